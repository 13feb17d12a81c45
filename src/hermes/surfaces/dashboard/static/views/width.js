// The width of an element, measured again whenever it changes.
import { useElement, useLayoutEffect, useState } from "../app/ui.js";

/**
 * @param {number} initial width before the first measurement
 * @param {number} least
 * @returns {[{ current: HTMLElement }, number]} a ref for the element, and its width
 */
export function useWidth(initial, least) {
  const box = /** @type {{ current: HTMLElement }} */ (useElement());
  const [width, setWidth] = useState(initial);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) =>
      setWidth(Math.max(entry.contentRect.width, least)),
    );
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  return [box, width];
}
