// Runs before the first paint: a theme the user chose, so that the page does not flash in another.
(() => {
  const contrast = matchMedia("(prefers-contrast: more)").matches ? "contrast" : "";
  let chosen = contrast;
  try {
    chosen = localStorage.getItem("hermes.theme") || contrast;
  } catch {
    // Storage may be forbidden; then the system's theme applies.
  }
  if (["light", "dark", "contrast"].includes(chosen))
    document.documentElement.dataset.theme = chosen;
})();
