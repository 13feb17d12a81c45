// The components that plugins for the original agent draw with, in our own look. React, because those plugins are.
import React from "/static/vendor/react-19.3.1/react.js";
import { toast } from "../../app/parts/toast.js";
import { t } from "../../app/translation.js";

/** @typedef {Record<string, any>} Props */

const h = React.createElement;

/**
 * Joins class names; what is empty is left out.
 * @param {...unknown} classes
 * @returns {string}
 */
export function cn(...classes) {
  return classes.flat(Infinity).filter(Boolean).join(" ");
}

/**
 * An element with a class of ours.
 * @param {string} tag
 * @param {string} name
 */
function styled(tag, name) {
  return (/** @type {Props} */ { className, ...rest }) =>
    h(tag, { ...rest, className: cn(name, className) });
}

/** @type {Record<string, string>} */
const BUTTON_KINDS = {
  destructive: "danger",
  ghost: "quiet",
  link: "quiet",
  outline: "",
  secondary: "",
};

/** @param {Props} props */
function Button({ className, variant, size, outlined, ghost, destructive, children, ...rest }) {
  const named = outlined ? "outline" : ghost ? "ghost" : destructive ? "destructive" : variant;
  const kind = BUTTON_KINDS[named] ?? "primary";
  const small = size === "sm" || size === "icon" ? "sdk-small" : "";
  return h(
    "button",
    { type: "button", ...rest, className: cn("button", kind, small, className) },
    children,
  );
}

/** @type {Record<string, string>} */
const BADGE_KINDS = { destructive: "bad", error: "bad", success: "good", warning: "warn" };

/** @param {Props} props */
function Badge({ className, variant, tone, ...rest }) {
  return h("span", {
    ...rest,
    className: cn("tag", BADGE_KINDS[variant ?? tone] ?? "", className),
  });
}

/** @param {Props} props */
function Checkbox({ className, checked, onCheckedChange, onChange, ...rest }) {
  const change = (/** @type {any} */ event) => {
    onChange?.(event);
    onCheckedChange?.(event.target.checked);
  };
  return h("input", { ...rest, type: "checkbox", checked, onChange: change, className });
}

/**
 * The browser's own select: keys and phones know it. Plugins listen to either of two events.
 * @param {Props} props
 */
function Select({ className, onValueChange, onChange, children, ...rest }) {
  const change = (/** @type {any} */ event) => {
    onValueChange?.(event.target.value);
    onChange?.(event);
  };
  return h("select", { ...rest, onChange: change, className: cn("input", className) }, children);
}

/** @param {Props} props */
function SelectOption({ value, children, disabled }) {
  return h("option", { value, disabled }, children ?? value);
}

const TabsChoice = React.createContext(null);

/** @param {Props} props */
function Tabs({ value, defaultValue, onValueChange, className, children }) {
  const [own, setOwn] = React.useState(defaultValue);
  const current = value ?? own;
  const choose = (/** @type {string} */ next) => {
    setOwn(next);
    onValueChange?.(next);
  };
  const shown = typeof children === "function" ? children(current, choose) : children;
  return h(
    TabsChoice.Provider,
    { value: { current, choose } },
    h("div", { className: cn("sdk-tabs", className) }, shown),
  );
}

/** @param {Props} props */
function TabsTrigger({ value, active, className, onClick, ...rest }) {
  const tabs = React.useContext(TabsChoice);
  const isOn = active ?? tabs?.current === value;
  const press = (/** @type {any} */ event) => {
    onClick?.(event);
    tabs?.choose(value);
  };
  return h("button", {
    ...rest,
    type: "button",
    role: "tab",
    "aria-selected": isOn,
    onClick: press,
    className: cn("button", isOn ? "primary" : "quiet", className),
  });
}

/** @param {Props} props */
function TabsContent({ value, className, ...rest }) {
  const tabs = React.useContext(TabsChoice);
  return tabs?.current === value ? h("div", { ...rest, role: "tabpanel", className }) : null;
}

const DialogChoice = React.createContext(null);

/** @param {Props} props */
function Dialog({ open, defaultOpen = false, onOpenChange, children }) {
  const [own, setOwn] = React.useState(defaultOpen);
  const change = (/** @type {boolean} */ next) => {
    setOwn(next);
    onOpenChange?.(next);
  };
  return h(DialogChoice.Provider, { value: { isOpen: open ?? own, change } }, children);
}

/** @param {Props} props */
function DialogContent({ className, children, ...rest }) {
  const dialog = React.useContext(DialogChoice);
  return dialog?.isOpen
    ? h(Modal, { ...rest, className, onClose: () => dialog.change(false) }, children)
    : null;
}

/** @param {Props} props */
function DialogClose({ children, ...rest }) {
  const dialog = React.useContext(DialogChoice);
  return h(
    Button,
    { ...rest, variant: "outline", onClick: () => dialog?.change(false) },
    children ?? t("Close"),
  );
}

/** @param {Props} props */
function Modal({ className, onClose, children, ...rest }) {
  const box = React.useRef(null);
  React.useLayoutEffect(() => {
    const dialog = box.current;
    dialog.showModal();
    return () => dialog.close(); // that gives the focus back
  }, []);
  const cancel = (/** @type {Event} */ event) => {
    event.preventDefault();
    onClose();
  };
  return h(
    "dialog",
    { ...rest, ref: box, onCancel: cancel, className: cn("dialog sdk-plugin", className) },
    h("div", { className: "dialog-body" }, children),
  );
}

/** @param {Props} props */
function ConfirmDialog({
  open,
  title,
  description,
  confirmLabel,
  cancelLabel,
  loading,
  destructive,
  onConfirm,
  onCancel,
}) {
  if (!open) return null;
  return h(
    Modal,
    { onClose: onCancel, "aria-label": typeof title === "string" ? title : undefined },
    h("h2", null, title),
    description && h("p", null, description),
    h(
      "div",
      { className: "row" },
      h(Button, { variant: "outline", onClick: onCancel }, cancelLabel ?? t("Cancel")),
      h(
        Button,
        { variant: destructive ? "destructive" : "default", disabled: loading, onClick: onConfirm },
        confirmLabel ?? t("Confirm"),
      ),
    ),
  );
}

/** @type {Record<string, "good" | "bad" | "info">} */
const TOAST_KINDS = { success: "good", error: "bad" };

/** Messages go to the page's own place for them. */
export function useToast() {
  const showToast = React.useCallback(
    (/** @type {string} */ text, /** @type {string} */ kind) =>
      toast(String(text), TOAST_KINDS[kind] ?? "info"),
    [],
  );
  return { showToast, toast: null };
}

/** @param {{ onDelete?: (id: unknown) => unknown }} [options] */
export function useConfirmDelete({ onDelete } = {}) {
  const [pendingId, setPending] = React.useState(null);
  const [isDeleting, setDeleting] = React.useState(false);
  const confirm = async () => {
    setDeleting(true);
    try {
      await onDelete?.(pendingId);
      setPending(null);
    } finally {
      setDeleting(false);
    }
  };
  const cancel = () => setPending(null);
  return {
    requestDelete: setPending,
    confirm,
    cancel,
    isOpen: pendingId !== null,
    isDeleting,
    pendingId,
  };
}

/** Everything but the slots, which the host adds. */
export const components = {
  Badge,
  Button,
  Card: styled("div", "card"),
  CardContent: styled("div", "sdk-stack"),
  CardDescription: styled("p", "muted small"),
  CardFooter: styled("div", "row wrap"),
  CardHeader: styled("div", "sdk-card-head"),
  CardTitle: styled("h2", "sdk-card-title"),
  Checkbox,
  ConfirmDialog,
  Dialog,
  DialogClose,
  DialogContent,
  DialogDescription: styled("p", "muted"),
  DialogFooter: styled("div", "row wrap"),
  DialogHeader: styled("div", "sdk-stack"),
  DialogTitle: styled("h2", ""),
  Input: styled("input", "input"),
  Label: styled("label", "sdk-label"),
  Select,
  SelectOption,
  Separator: styled("hr", "sdk-line"),
  Tabs,
  TabsContent,
  TabsList: (/** @type {Props} */ { className, ...rest }) =>
    h("div", { ...rest, role: "tablist", className: cn("row wrap", className) }),
  TabsTrigger,
  Toast: () => null,
};
