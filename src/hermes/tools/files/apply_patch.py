"""`apply_patch`: changes several files at once, all of them or none. The code that does the work is loaded at the first
call.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from hermes.core.ports import ToolContext
from hermes.errors import ToolFailed
from hermes.tools.files.file_content import UNCHANGED
from hermes.tools.files.file_stamps import FileStamps
from hermes.tools.files.open_buffers import OpenBuffers, buffered_content
from hermes.tools.tool import require_judged, tool

if TYPE_CHECKING:
    from hermes.tools.files.patch_plan import PatchPlan

_FORMAT = (
    "*** Begin Patch, then for each file *** Add File: PATH and +lines, *** Delete File: PATH, or *** Update File: PATH"
    " (then maybe *** Move to: PATH) and hunks: @@ with a line above the place, then lines marked space, - or +;"
    " *** End Patch. Or a unified diff."
)


def paths_in(arguments: Mapping[str, Any]) -> list[str]:
    """Returns the files that a call would touch."""
    from hermes.tools.files.patch_parse import patch_paths

    patch = arguments.get("patch")
    return patch_paths(patch) if isinstance(patch, str) else []


class Patches:
    """`apply_patch` for one session, and what the session knows about its files."""

    def __init__(self, seen: FileStamps, buffers: OpenBuffers | None = None) -> None:
        self._seen = seen
        self.buffers = buffers

    def _check_patch(
        self, arguments: Mapping[str, Any], _: tuple[Path, ...], cwd: Path
    ) -> None:
        from hermes.tools.files.patch_plan import plan_patch

        read = partial(buffered_content, buffers=self.buffers)
        self._require_current(plan_patch(arguments["patch"], cwd, read))

    @tool("apply_patch", effect="files", paths=paths_in, precheck=_check_patch)
    def apply_patch(
        self, context: ToolContext, patch: Annotated[str, Meta(description=_FORMAT)]
    ) -> str:
        """Changes several files at once, all or none. Give each hunk three unchanged lines around its change."""
        from hermes.tools.files.batch_write import write_all
        from hermes.tools.files.patch_plan import plan_patch

        read = partial(buffered_content, buffers=self.buffers)
        plan = plan_patch(patch, context.cwd, read)
        for change in plan.changes:
            require_judged(change.name, change.path, context)
        self._require_current(plan)
        stamps = write_all(plan.changes, self.buffers)
        for change in plan.changes:
            self._seen.wrote(change.path, stamps.get(change.path))
        return plan.report

    def _require_current(self, plan: "PatchPlan") -> None:
        """Raises ToolFailed if a file has changed since the session last saw it."""
        for change in plan.changes:
            if change.before is not None and not self._seen.is_current(
                change.path, change.before.stamp
            ):
                raise ToolFailed(
                    f"{change.name} changed since you read it.",
                    hint=f"{UNCHANGED} Read it again first.",
                )
