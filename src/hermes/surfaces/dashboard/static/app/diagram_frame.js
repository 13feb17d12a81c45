// Runs in the sandboxed frame beside Mermaid: draws diagrams for the page, one after the other.
// The page shows what comes back only as a picture, so nothing in it can run there.
/** @typedef {{ id: number, text: string, isDark: boolean }} DiagramRequest */
(() => {
  const { mermaid, port } = /** @type {any} */ (window);
  const STYLE = { securityLevel: "strict", suppressErrorRendering: true, startOnLoad: false };
  const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif"; // not translated
  let last = Promise.resolve();
  let count = 0;

  /**
   * The picture with a size of its own: Mermaid's is as wide as what is around it.
   * @param {string} svg
   */
  const sized = (svg) => {
    const box = /viewBox="[-\d.e]+ [-\d.e]+ ([\d.e]+) ([\d.e]+)"/.exec(svg);
    const [width, height] = box ? [Math.ceil(Number(box[1])), Math.ceil(Number(box[2]))] : [0, 0];
    const plain = svg.replace(/^<svg[^>]*>/, (tag) =>
      tag
        .replace(/ (?:width|height)="[^"]*"/g, "")
        .replace("<svg", `<svg width="${width}" height="${height}"`),
    );
    return { svg: width ? plain : svg, width, height };
  };

  /** @param {DiagramRequest} request */
  const draw = async ({ id, text, isDark }) => {
    try {
      mermaid.initialize({
        ...STYLE,
        theme: isDark ? "dark" : "default",
        fontFamily: FONT,
        htmlLabels: false,
        flowchart: { htmlLabels: false },
      });
      const { svg } = await mermaid.render(`diagram-${++count}`, text);
      port.postMessage({ id, ...sized(svg) });
    } catch (error) {
      port.postMessage({ id, error: String(error instanceof Error ? error.message : error) });
    }
  };

  port.onmessage = (/** @type {{ data: DiagramRequest }} */ { data }) => {
    last = last.then(() => draw(data));
  };
})();
