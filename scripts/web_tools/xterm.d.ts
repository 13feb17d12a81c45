// xterm's declarations are of modules by name; the page imports them by address.
export { FitAddon } from "@xterm/addon-fit";
export { UnicodeGraphemesAddon } from "@xterm/addon-unicode-graphemes";
export { Terminal } from "@xterm/xterm";
