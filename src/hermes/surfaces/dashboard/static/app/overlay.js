// The overlay above the view: "palette" | "keys" | "more" | null.
import { Store } from "./ui.js";

export const overlay = new Store(/** @type {"palette" | "keys" | "more" | null} */ (null));

export const showPalette = () => overlay.set("palette");
export const showKeys = () => overlay.set("keys");
export const showMore = () => overlay.set("more");
