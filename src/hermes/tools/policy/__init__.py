"""The policy: what may be done with each call before it runs. See `approval` for the decisions, `rules` for the user's."""

from hermes.tools.policy.approval import ApprovalPolicy, Circumstances, Mode
from hermes.tools.policy.rulefile import RuleFile

__all__ = ["ApprovalPolicy", "Circumstances", "Mode", "RuleFile"]
