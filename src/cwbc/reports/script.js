// The interactive parts of a page: values under the pointer, methods to hide, files to save, light and dark.
"use strict";
(() => {
  const SVG = document.querySelector("svg").namespaceURI;
  const root = document.documentElement;
  const tip = document.getElementById("tip");
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const hidden = new Set();
  root.classList.add("scripted");

  const make = (name, attributes = {}, ...content) => {
    const element = name.includes(":") ? document.createElementNS(SVG, name.slice(4)) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...content);
    return element;
  };

  // Light and dark: as the system says until the button is pressed, then that until the window is closed.
  const remembered = (value) => {
    try {
      if (value) sessionStorage.setItem("theme", value);
      return sessionStorage.getItem("theme");
    } catch {
      return value ?? null; // a browser that stores nothing for files
    }
  };
  const theme = () =>
    root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  const stored = remembered();
  if (stored) root.dataset.theme = stored;
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = theme() === "dark" ? "light" : "dark";
    remembered(root.dataset.theme);
  });

  // Legends: a name is shown or hidden in every chart and table.
  const buttons = all("[data-toggle]");
  const redraw = () => {
    hide();
    for (const button of buttons) button.setAttribute("aria-pressed", !hidden.has(button.dataset.toggle));
    for (const element of all("[data-series]")) element.classList.toggle("off", hidden.has(element.dataset.series));
    checkOverflow();
  };
  const light = (name) => {
    for (const drawings of all(".drawings")) {
      const mine = all("[data-series]", drawings).filter((element) => element.dataset.series === name);
      drawings.classList.toggle("dim", mine.length > 0);
      for (const element of all(".lit", drawings)) element.classList.remove("lit");
      for (const element of mine) element.classList.add("lit");
    }
  };
  for (const button of buttons) {
    const name = button.dataset.toggle;
    button.addEventListener("click", () => {
      hidden.delete(name) || hidden.add(name);
      redraw();
    });
    button.addEventListener("dblclick", () => {
      const others = all("[data-toggle]", button.closest(".legend")).map((other) => other.dataset.toggle);
      for (const other of others) hidden[other === name ? "delete" : "add"](other);
      redraw();
    });
    button.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && light(name));
    button.addEventListener("pointerleave", () => light(null));
  }

  // Hovering: by mouse, touch or arrow keys, the values at the nearest stop.
  const place = ([start, end, low, high, logarithmic], value) =>
    start + (end - start) * (logarithmic ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low));
  const visible = (data) => data.series.filter((series) => !hidden.has(series.name));
  let follow = null; // puts the values where they belong after the page has moved
  const hide = () => {
    tip.hidden = true;
    follow = null;
    for (const group of all(".hover")) group.remove();
  };

  const show = (svg, data, scales, index) => {
    hide();
    const across = data.along === "across";
    const [position, heading] = data.stops[index];
    const stop = place(scales[data.along], position);
    const [from, to] = scales[across ? "up" : "across"];
    const group = make("svg:g", { class: "hover" });
    const ends = across ? { x1: stop, x2: stop, y1: from, y2: to } : { x1: from, x2: to, y1: stop, y2: stop };
    group.append(make("svg:line", ends));
    const found = visible(data).filter((series) => series.values[index]);
    for (const { look, values } of found) {
      const other = place(scales[across ? "up" : "across"], values[index][0]);
      const inside = other >= Math.min(from, to) - 1 && other <= Math.max(from, to) + 1;
      const [cx, cy] = across ? [stop, other] : [other, stop];
      if (inside) group.append(make("svg:circle", { class: look, cx, cy, r: 4.5 }));
    }
    svg.append(group);
    found.sort((one, other) => other.values[index][0] - one.values[index][0]);
    const rows = found.map(({ name, look, values }) => {
      const cells = values[index].slice(1).map((words) => make("td", {}, words));
      return make("tr", {}, make("th", {}, make("i", { class: look }), name), ...cells);
    });
    tip.replaceChildren(make("b", {}, heading), make("table", {}, ...rows));
    tip.hidden = false;
    follow = () => beside(svg, across ? stop : (from + to) / 2, across ? Math.min(from, to) : stop + 10);
    follow();
  };

  const beside = (svg, x, y) => {
    const box = svg.getBoundingClientRect();
    if (box.bottom < 0 || box.top > innerHeight) return hide();
    const ratio = box.width / svg.viewBox.baseVal.width;
    const { width, height } = tip.getBoundingClientRect();
    const left = box.left + x * ratio + 14;
    const top = innerWidth < 560 ? box.bottom : box.top + y * ratio; // a phone's chart would be covered
    const fits = left + width <= innerWidth - 8;
    const across = fits ? left : Math.max(8, left - 28 - width);
    const down = Math.max(8, Math.min(top, innerHeight - height - 8));
    tip.style.transform = `translate(${across}px, ${down}px)`;
  };

  for (const figure of all(".chart")) {
    const data = JSON.parse(figure.querySelector("script").textContent);
    for (const svg of all(".drawings > svg", figure)) {
      const scales = JSON.parse(svg.dataset.scales);
      let current = 0;
      const go = (index) => show(svg, data, scales, (current = Math.max(0, Math.min(index, data.stops.length - 1))));
      const point = (event) => {
        const box = svg.getBoundingClientRect();
        const ratio = svg.viewBox.baseVal.width / box.width;
        const at = (data.along === "across" ? event.clientX - box.left : event.clientY - box.top) * ratio;
        const shown = visible(data);
        const far = data.stops.map(([position], index) =>
          shown.some((series) => series.values[index]) ? Math.abs(place(scales[data.along], position) - at) : Infinity,
        );
        const nearest = far.indexOf(Math.min(...far));
        if (nearest >= 0 && far[nearest] < Infinity) go(nearest);
      };
      svg.addEventListener("pointermove", point);
      svg.addEventListener("pointerdown", point);
      svg.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && hide());
      svg.addEventListener("focus", () => svg.matches(":focus-visible") && go(current));
      svg.addEventListener("blur", hide);
      svg.addEventListener("keydown", (event) => {
        const last = data.stops.length - 1;
        const [before, after] = [current - 1, current + 1];
        const to = { ArrowLeft: before, ArrowUp: before, ArrowRight: after, ArrowDown: after, Home: 0, End: last };
        if (event.key === "Escape") hide();
        if (!(event.key in to)) return;
        event.preventDefault();
        go(to[event.key]);
      });
    }
    figure.querySelector("[data-get=csv]").addEventListener("click", () => {
      save(new Blob([data.csv], { type: "text/csv" }), `${data.file}.csv`);
    });
    figure.querySelector("[data-get=png]").addEventListener("click", () => {
      picture(figure).then((blob) => save(blob, `${data.file}.png`));
    });
  }
  document.addEventListener("pointerdown", (event) => event.target.closest(".drawings") || hide());
  addEventListener("scroll", () => follow?.(), { passive: true });
  addEventListener("resize", hide);

  // Saving: a chart as it is seen, with its title and legend.
  const save = (blob, name) => {
    const link = make("a", { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  const PAINT = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray",
    "stroke-linecap", "stroke-linejoin", "font-family", "font-size", "font-weight", "text-anchor", "display"];
  const copied = (svg) => {
    const copy = svg.cloneNode(true);
    const originals = all("*", svg);
    all("*", copy).forEach((element, index) => {
      const style = getComputedStyle(originals[index]);
      for (const property of PAINT) element.style.setProperty(property, style.getPropertyValue(property));
    });
    for (const group of all(".hover", copy)) group.remove();
    return copy;
  };
  const picture = (figure) => {
    const svg = all(".drawings > svg", figure).find((drawing) => drawing.getBoundingClientRect().width > 0);
    const { width, height } = svg.viewBox.baseVal;
    const style = getComputedStyle(figure);
    const pen = make("canvas").getContext("2d");
    const words = (text, x, y, font) => {
      const look = { fill: style.color, style: `font: ${font} ${style.fontFamily}` };
      return make("svg:text", { x, y, ...look }, text);
    };
    const put = (element, box) => {
      for (const [key, value] of Object.entries(box)) element.setAttribute(key, value);
      return element;
    };
    const margin = 16;
    const whole = make("svg:svg", { xmlns: SVG });
    whole.append(words(figure.querySelector("h3").textContent, margin, 26, "600 15px"));
    whole.append(put(copied(svg), { x: margin, y: 40, width, height }));
    let [x, y] = [margin, height + 64];
    pen.font = `13px ${style.fontFamily}`;
    for (const item of all(".legend li", figure).filter((item) => !item.querySelector("[aria-pressed=false]"))) {
      const name = item.textContent;
      const wide = 34 + pen.measureText(name).width;
      if (x > margin && x + wide > width + margin) [x, y] = [margin, y + 22];
      const swatch = put(copied(item.querySelector("svg")), { x, y: y - 10, width: 26, height: 12 });
      whole.append(swatch, words(name, x + 34, y, "13px"));
      x += wide + 18;
    }
    const [across, down] = [width + 2 * margin, y + margin];
    whole.prepend(make("svg:rect", { width: across, height: down, fill: style.backgroundColor }));
    whole.setAttribute("viewBox", `0 0 ${across} ${down}`);
    const sharp = 3; // pixels per unit
    whole.setAttribute("width", across * sharp);
    whole.setAttribute("height", down * sharp);
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(whole))}`;
    return image.decode().then(() => {
      const canvas = make("canvas", { width: across * sharp, height: down * sharp });
      canvas.getContext("2d").drawImage(image, 0, 0);
      return new Promise((done) => canvas.toBlob(done, "image/png"));
    });
  };

  // Tables that are wider than their box have a hint.
  const boxes = all(".box");
  const checkOverflow = () => {
    for (const box of boxes) {
      box.classList.toggle("scrolls", box.scrollWidth > box.clientWidth + 1);
      box.classList.toggle("ended", box.scrollLeft + box.clientWidth >= box.scrollWidth - 2);
    }
  };
  const sizes = new ResizeObserver(checkOverflow);
  for (const box of boxes) {
    sizes.observe(box);
    box.addEventListener("scroll", checkOverflow, { passive: true });
  }

  // What is folded is printed, too.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = all("details:not([open])");
    for (const details of opened) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
  });
})();
