"""The policy: decides about each call before it runs. `approval` decides; `rules` are the user's."""

from hermes.tools.policy.approval import ApprovalPolicy
from hermes.tools.policy.policy_state import Circumstances, Mode
from hermes.tools.policy.rule_file import RuleFile

__all__ = ["ApprovalPolicy", "Circumstances", "Mode", "RuleFile"]
