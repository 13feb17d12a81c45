"""The trajectories of a batch, and what an export takes of them."""

from collections import Counter
from collections.abc import Iterator

import msgspec

from hermes.app.app import App
from hermes.app.batches.batch import Batch, Batches
from hermes.app.batches.row_state import row_states
from hermes.trajectories.formats import ExportChoice, TrajectoryFormat, encoded
from hermes.trajectories.trajectory import Trajectory, read_trajectory


def trajectories(app: App, batch: Batch) -> Iterator[Trajectory]:
    """The newest attempt at each row that has begun, in the order of the dataset."""
    rows = Batches(app.home).rows(batch)
    for state in row_states(app, batch):
        if state.status == "waiting":
            continue
        label: dict[str, str | int] = {"batch": batch.name, "row": state.number}
        if name := rows[state.number - 1].id:
            label["id"] = name
        found = read_trajectory(app.store.log.every_event(state.session))
        if found.messages:
            yield msgspec.structs.replace(found, label=label)


class BatchExport:
    """Encodes trajectories, and counts those that were left out, by the reason."""

    def __init__(self, choice: ExportChoice, form: TrajectoryFormat) -> None:
        self._choice = choice
        self._form: TrajectoryFormat = form
        self.written = 0
        self.left_out: Counter[str] = Counter()

    def lines(self, found: Iterator[Trajectory]) -> Iterator[str]:
        """The lines of the export."""
        for one in found:
            taken = self._choice.taken(one)
            if isinstance(taken, str):
                self.left_out[taken] += 1
            else:
                self.written += 1
                yield encoded(taken, self._form)
