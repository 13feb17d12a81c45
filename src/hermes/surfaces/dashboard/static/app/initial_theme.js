// Runs before the first paint: a theme the user chose, so that the page does not flash in another.
(() => {
  try {
    const chosen = localStorage.getItem("hermes.theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // Storage may be forbidden; then the system's theme applies.
  }
})();
