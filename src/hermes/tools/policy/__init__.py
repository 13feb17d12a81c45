"""The policy: judges every tool call before it runs. Start at `approval`; `rules` holds the user's own rules."""

from hermes.tools.policy.approval import ApprovalPolicy
from hermes.tools.policy.policy_state import Circumstances, Mode
from hermes.tools.policy.rule_file import RuleFile

__all__ = ["ApprovalPolicy", "Circumstances", "Mode", "RuleFile"]
