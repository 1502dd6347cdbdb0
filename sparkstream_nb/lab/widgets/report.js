// A report's pictures become plots: the data of each is in the page, and Plotly's script as well.

const make = (tag, className, parent, more = {}) => {
  const element = Object.assign(document.createElement(tag), { className }, more);
  parent.append(element);
  return element;
};
const put = (element, text) => { if (element.textContent !== text) element.textContent = text; };
const bytesOf = (id) => Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));

function explore() {
  for (const section of document.querySelectorAll("section[data-figures]")) {
    const figures = JSON.parse(document.getElementById(section.dataset.figures).textContent);
    [...section.querySelectorAll("img.sparkstream-picture")].slice(0, figures.length).forEach((image, i) => {
      const place = document.createElement("div");
      image.replaceWith(place);
      const plot = createPlot(place, () => Math.floor(section.clientWidth), async () => bytesOf("plotly"));
      plot.draw(figures[i]);
      window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plot.draw(figures[i]));
    });
  }
}
