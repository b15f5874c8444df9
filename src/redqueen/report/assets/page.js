// Draws the figures from the JSON in the page in the page's colours, makes a table of each on demand, and refreshes the
// pages of the dashboard.
"use strict";
(function () {
  let charts = JSON.parse(document.getElementById("figures").textContent);
  const DASHES = ["solid", [7, 4], [2, 3], [9, 3, 2, 3]];
  const SEQUENTIAL = ["#00204d", "#31446b", "#666970", "#958f78", "#cbba69", "#ffea46"];
  const DOT_PX = 13;
  const SHAPES = { circle: "M13 1.5a4.5 4.5 0 1 0 .01 0Z", square: "M9 2H17V10H9Z", triangle: "M13 1L18 10H8Z", diamond: "M13 1L18 6L13 11L8 6Z", bar: "M11 0H15V12H11Z" };
  const drawn = new Map();

  // ---- words and numbers -------------------------------------------------------------------------------------------
  function number(value) {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    if (Number.isInteger(value)) return value.toLocaleString("en");
    if (size >= 1000) return Math.round(value).toLocaleString("en");
    return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
  }

  function palette() {
    const style = getComputedStyle(document.documentElement);
    const named = (name) => style.getPropertyValue("--" + name).trim();
    const colors = [0, 1, 2, 3, 4, 5, 6, 7].map((index) => named("c" + index));
    return { ink: named("ink"), soft: named("soft"), quiet: named("quiet"), line: named("line"), card: named("card"), colors };
  }

  function colorOf(key, page) {
    return typeof key === "number" ? page.colors[key % page.colors.length] : page[key];
  }

  // ---- what all charts share ---------------------------------------------------------------------------------------
  function frame(page) {
    const rich = { ink: { color: page.ink }, quiet: { color: page.quiet } };
    page.colors.forEach((color, index) => { rich["c" + index] = { color }; });
    return {
      animation: false,
      textStyle: { fontFamily: "system-ui, 'Segoe UI', Roboto, 'Noto Sans', sans-serif", color: page.ink },
      grid: { left: 6, right: 16, top: 12, bottom: 26, containLabel: true },
      legend: { show: false },
      tooltip: { renderMode: "richText", confine: true, backgroundColor: page.card, borderColor: page.line,
        textStyle: { color: page.ink, fontSize: 13, rich } },
    };
  }

  function axis(page, extra) {
    return Object.assign({
      axisLine: { lineStyle: { color: page.line } }, axisTick: { show: false },
      axisLabel: { color: page.soft, hideOverlap: true }, splitLine: { lineStyle: { color: page.line, opacity: 0.6 } },
      nameTextStyle: { color: page.soft },
    }, extra);
  }

  function stepAxis(page, extra) {
    return axis(page, Object.assign(
      { name: "step", nameLocation: "middle", nameGap: 24, splitLine: { show: false }, minInterval: 1 }, extra));
  }

  function mark(key, page) {
    return "{" + (typeof key === "number" ? "c" + (key % page.colors.length) : key) + "|●} ";
  }

  // ---- lines -------------------------------------------------------------------------------------------------------
  function bandSeries(name, band, color) {
    return {
      type: "custom", name, data: band, encode: { x: 0, y: [1, 2] }, itemStyle: { color }, silent: true, clip: true, z: 1,
      renderItem(params, api) {
        if (params.dataIndex > 0) return null;
        const above = band.map((row) => api.coord([row[0], row[2]]));
        const below = band.map((row) => api.coord([row[0], row[1]])).reverse();
        if (band.length === 1) {
          return { type: "polyline", shape: { points: above.concat(below) }, style: { stroke: color, lineWidth: 2, opacity: 0.5, fill: null } };
        }
        return { type: "polygon", shape: { points: above.concat(below) }, style: { fill: color, opacity: 0.15 } };
      },
    };
  }

  // With n runs, run k has its markers at the steps k, k + n, k + 2n, ..., so that lines with the same values stay visible.
  // With fewer steps than runs, a later run's marker is smaller and covers an earlier one's.
  function markSize(at, count, num, index) {
    const step = count * Math.max(1, Math.floor(num / (6 * count))), turns = Math.min(num, count);
    return index % step === (at % turns) * (step / count) ? 9 + 6 * (Math.floor((count - 1) / turns) - Math.floor(at / turns)) : 0;
  }

  function linesOption(chart, page) {
    const series = [], bands = [], count = Math.max(...chart.series.map((part) => part.mark || 0)) + 1;
    for (const part of chart.series) {
      const color = colorOf(part.color, page), name = part.group || part.name;
      series.push({
        type: "line", name, data: part.points, connectNulls: false, silent: true, emphasis: { disabled: true },
        symbol: part.symbol ? "path://" + SHAPES[part.symbol] : "circle", showSymbol: Boolean(part.dots || part.symbol) || part.points.length < 3,
        symbolSize: part.symbol ? (_, at) => markSize(part.mark, count, part.points.length, at.dataIndex) : part.dots ? 7 : 4,
        itemStyle: part.symbol ? { color: part.hollow ? page.card : color, borderColor: part.hollow ? color : page.card, borderWidth: part.hollow ? 2 : 1 } : { color },
        lineStyle: { color, width: part.width, type: DASHES[part.dash], opacity: part.faint ? 0.5 : 1 }, z: part.faint ? 2 : 3,
      });
      for (const band of part.bands || []) bands.push(bandSeries(name, band, color));
    }
    if (chart.guides && series.length) {
      series[0].markLine = {
        symbol: "none", silent: true, lineStyle: { color: page.quiet, type: [3, 4], width: 1 },
        label: { formatter: (item) => item.name, position: "insideStartTop", color: page.soft, fontSize: 11 },
        data: chart.guides.map((guide) => ({ yAxis: guide.value, name: guide.name })),
      };
    }
    const option = frame(page);
    const steps = chart.series.flatMap((part) => part.points.map((point) => point[0]));
    option.xAxis = stepAxis(page, { type: "value", min: Math.min(...steps), max: Math.max(...steps) });
    option.yAxis = axis(page, { type: "value", scale: true, min: chart.low, max: chart.high });
    option.tooltip.trigger = "axis";
    option.tooltip.formatter = (items) => {
      const rows = items.filter((item) => item.seriesIndex < chart.series.length && item.value[1] !== null && item.value[1] !== undefined);
      const text = rows.map((item) => mark(chart.series[item.seriesIndex].color, page) + chart.series[item.seriesIndex].name + "  " + number(item.value[1]));
      return ["step " + number(items[0].axisValue), ...text].join("\n");
    };
    option.series = series.concat(bands);
    return option;
  }

  // ---- means with intervals ----------------------------------------------------------------------------------------
  function symbolShape(symbol, x, y) {
    const size = 4.5;
    if (symbol === "circle") return { type: "circle", shape: { cx: x, cy: y, r: size } };
    return { type: "polygon", shape: { points: [[x, y - size - 1], [x + size + 1, y], [x, y + size + 1], [x - size - 1, y]] } };
  }

  function dotsOption(chart, page) {
    const option = frame(page), count = chart.series.length;
    option.grid.bottom = 6;
    option.xAxis = axis(page, { type: "value", scale: true });
    option.yAxis = axis(page, { type: "category", inverse: true, data: chart.categories, splitLine: { show: true, lineStyle: { color: page.line, opacity: 0.5 } },
      axisLabel: { color: page.ink, width: 110, overflow: "truncate" } });
    option.tooltip.trigger = "item";
    option.tooltip.formatter = (item) => {
      const [at, mean, low, high] = item.value;
      return [chart.categories[at], mark(chart.series[item.seriesIndex].color, page) + item.seriesName, number(mean) + "  (" + number(low) + " to " + number(high) + ")"].join("\n");
    };
    option.series = chart.series.map((part, index) => {
      const color = colorOf(part.color, page);
      const rows = part.values.map((value, at) => value && [at, ...value]).filter(Boolean);
      return {
        type: "custom", name: part.name, data: rows, encode: { x: [1, 2, 3], y: 0 }, itemStyle: { color }, z: 3,
        renderItem(params, api) {
          const room = Math.min(DOT_PX, (api.size([0, 1])[1] * 0.85) / count);
          const shift = (index - (count - 1) / 2) * room;
          const at = (value) => { const point = api.coord([value, api.value(0)]); return [point[0], point[1] + shift]; };
          const [low, y] = at(api.value(2)), [high] = at(api.value(3)), [mean] = at(api.value(1));
          return { type: "group", children: [
            { type: "line", shape: { x1: low, y1: y, x2: high, y2: y }, style: { stroke: color, lineWidth: 2 } },
            { ...symbolShape(part.symbol, mean, y), style: { fill: part.hollow ? page.card : color, stroke: color, lineWidth: 2 } },
          ] };
        },
      };
    });
    return option;
  }

  // ---- match-up matrix ---------------------------------------------------------------------------------------------
  function heatOption(chart, page) {
    const option = frame(page), few = chart.columns.length <= 9;
    option.grid.bottom = 44;
    option.xAxis = axis(page, { type: "category", data: chart.columns, position: "top", name: "", splitLine: { show: false },
      axisLabel: { color: page.ink, rotate: chart.columns.length > 6 ? 60 : 0, interval: 0 } });
    option.yAxis = axis(page, { type: "category", data: chart.rows, inverse: true, splitLine: { show: false }, axisLabel: { color: page.ink, interval: 0 } });
    option.visualMap = { dimension: 2, min: 0, max: 1, calculable: false, orient: "horizontal", left: "center", bottom: 0, itemHeight: 120, itemWidth: 12,
      inRange: { color: SEQUENTIAL }, text: ["1", "0"], textStyle: { color: page.soft } };
    option.tooltip.trigger = "item";
    option.tooltip.formatter = (item) => {
      const [column, row, value, weight] = item.value;
      return "teacher " + chart.rows[row] + ", student " + chart.columns[column] + "\nsolved " + number(value) + " of " + weight + " tasks";
    };
    option.series = [{
      type: "heatmap", data: chart.cells, itemStyle: { borderColor: page.card, borderWidth: 1.5 }, emphasis: { disabled: true },
      label: { show: few, formatter: (item) => (item.value[2] < 0.55 ? "{d|" : "{b|") + item.value[2].toFixed(2) + "}",
        rich: { d: { color: "#ffffff", fontSize: 11 }, b: { color: "#111111", fontSize: 11 } } },
    }];
    return option;
  }

  // ---- lineage -----------------------------------------------------------------------------------------------------
  const FAMILIES = [
    { name: "founder", symbol: "bar", color: "quiet" }, { name: "mutation", symbol: "circle", color: 0 },
    { name: "crossover", symbol: "diamond", color: 1 }, { name: "copy or other", symbol: "triangle", color: 2 },
  ];

  function familyOf(operator) {
    if (operator === "founder") return 0;
    return operator.startsWith("M") ? 1 : operator.startsWith("X") ? 2 : 3;
  }

  function birthShape(family, x, y) {
    const points = { 2: [[x, y - 7], [x + 7, y], [x, y + 7], [x - 7, y]], 3: [[x, y - 7], [x + 6.5, y + 5], [x - 6.5, y + 5]] }[family];
    if (points) return { type: "polygon", shape: { points } };
    return family === 1 ? { type: "circle", shape: { cx: x, cy: y, r: 6 } } : { type: "rect", shape: { x: x - 2, y: y - 7, width: 4, height: 14 } };
  }

  function lineageOption(chart, page) {
    const option = frame(page);
    const last = Math.max(...chart.lives.map((life) => life.end));
    option.grid.left = 16;
    option.xAxis = stepAxis(page, { type: "value", min: Math.min(...chart.lives.map((life) => life.start)), max: last });
    option.yAxis = axis(page, { type: "category", data: chart.rows, inverse: true, splitLine: { show: false }, axisLabel: { color: page.ink, interval: 0 } });
    option.tooltip.trigger = "item";
    option.tooltip.formatter = (item) => {
      const life = chart.lives[item.dataIndex];
      if (!life) return "";
      const from = life.parents.length ? "from " + life.parents.join(" and ") + " by " + life.operator : "founder";
      return [life.id, from, "steps " + life.start + " to " + life.end + (life.alive ? ", still there" : ", then replaced")].join("\n");
    };
    const links = {
      type: "custom", data: chart.links.map((link) => [link.step, link.start, link.end]), encode: { x: 0, y: [1, 2] }, silent: true, z: 2, clip: false,
      renderItem(params, api) {
        const [x1, y1] = api.coord([api.value(0), api.value(1)]), [x2, y2] = api.coord([api.value(0), api.value(2)]);
        const bend = 10 + Math.abs(y2 - y1) * 0.12;
        return { type: "bezierCurve", shape: { x1, y1, x2, y2, cpx1: x1 - bend, cpy1: y1, cpx2: x2 - bend, cpy2: y2 }, style: { stroke: page.quiet, lineWidth: 1.2, fill: null } };
      },
    };
    const lives = {
      type: "custom", name: "lives", data: chart.lives.map((life) => [life.start, life.row, life.end]), encode: { x: [0, 2], y: 1 }, z: 3, clip: false,
      renderItem(params, api) {
        const life = chart.lives[params.dataIndex], family = familyOf(life.operator), color = colorOf(FAMILIES[family].color, page);
        const [x1, y] = api.coord([life.start, life.row]), [x2] = api.coord([life.end, life.row]);
        const children = [
          { type: "line", shape: { x1, y1: y, x2, y2: y }, style: { stroke: color, lineWidth: life.alive ? 5 : 3, opacity: life.alive ? 0.75 : 0.4 } },
          { ...birthShape(family, x1, y), style: { fill: color, stroke: page.card, lineWidth: 1 } },
        ];
        if (family && x2 - x1 > 12 + 6.5 * life.operator.length) {
          children.push({ type: "text", style: { text: life.operator, x: x1 + 9, y: y - 16, fill: page.ink, fontSize: 11 } });
        }
        return { type: "group", children };
      },
    };
    option.series = [lives, links];
    return option;
  }

  // ---- legends: buttons that hide and show what they name -----------------------------------------------------------
  function shape(kind, attributes) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", kind);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  }

  function swatch(part, chart, page) {
    const color = colorOf(part.color, page), svg = shape("svg", { width: 26, height: 12, viewBox: "0 0 26 12", "aria-hidden": "true" });
    if (chart.type === "lines" || chart.type === "dots") {
      const dash = chart.type === "lines" && part.dash ? DASHES[part.dash].join(" ") : "none";
      svg.append(shape("line", { x1: 0, y1: 6, x2: 26, y2: 6, stroke: color, "stroke-width": Math.min(part.width || 2, 2.5), "stroke-dasharray": dash }));
    }
    if (part.symbol) svg.append(shape("path", { d: SHAPES[part.symbol], fill: part.hollow ? page.card : color, stroke: color, "stroke-width": 2 }));
    return svg;
  }

  function fillLegend(slot, drawing, chart, page) {
    const parts = chart.type === "lineage" ? FAMILIES : (chart.series || []).filter((part) => !part.faint);
    const hidden = new Set([...slot.querySelectorAll("[aria-pressed=false]")].map((button) => button.textContent));
    slot.replaceChildren();
    slot.hidden = parts.length < 2;
    if (slot.hidden) return;
    for (const part of parts) {
      const item = document.createElement(chart.type === "lineage" ? "span" : "button");
      item.append(swatch(part, chart, page), document.createTextNode(part.name));
      slot.append(item);
      if (chart.type === "lineage") continue;
      item.type = "button";
      const press = (on) => { item.setAttribute("aria-pressed", String(on)); drawing.dispatchAction({ type: on ? "legendSelect" : "legendUnSelect", name: part.name }); };
      item.addEventListener("click", () => press(item.getAttribute("aria-pressed") === "false"));
      press(!hidden.has(part.name));
    }
  }

  const OPTIONS = { lines: linesOption, dots: dotsOption, heat: heatOption, lineage: lineageOption };

  function draw(box) {
    const chart = charts[box.dataset.figure], rows = (chart.categories || chart.rows || []).length;
    if (drawn.has(box)) drawn.get(box).dispose();
    if (chart.type === "dots") box.style.height = Math.max(150, 70 + rows * (chart.series.length * DOT_PX + 14)) + "px";
    if (chart.type === "lineage") box.style.height = Math.max(220, 80 + rows * (rows > 12 ? 24 : 40)) + "px";
    if (chart.type === "heat") box.style.height = Math.max(240, 110 + rows * 26) + "px";
    const drawing = echarts.init(box, null, { renderer: "svg" }), page = palette();
    drawing.setOption(OPTIONS[chart.type](chart, page));
    drawn.set(box, drawing);
    fillLegend(box.closest(".card").querySelector(".legend"), drawing, chart, page);
  }

  // ---- the same numbers as a table, for those who cannot or do not want to see the chart ----------------------------
  function tableOf(chart) {
    if (chart.type === "lines") {
      const columns = [], byStep = new Map();
      const put = (name, step, value) => {
        if (!columns.includes(name)) columns.push(name);
        if (!byStep.has(step)) byStep.set(step, new Map());
        if (value !== null) byStep.get(step).set(name, value);
      };
      for (const part of chart.series) {
        for (const [step, value] of part.points) put(part.name, step, value);
        for (const band of part.bands || []) for (const [step, low, high] of band) { put(part.name + " low", step, low); put(part.name + " high", step, high); }
      }
      const steps = [...byStep.keys()].sort((a, b) => a - b);
      return { head: ["step", ...columns], rows: steps.map((step) => [String(step), ...columns.map((name) => number(byStep.get(step).get(name)))]) };
    }
    if (chart.type === "dots") {
      const rows = chart.categories.flatMap((category, at) => chart.series.filter((part) => part.values[at]).map(
        (part) => [category, part.name, ...part.values[at].map(number)]));
      return { head: ["", "what", "mean", "low", "high"], rows };
    }
    if (chart.type === "heat") {
      const rows = chart.cells.map(([column, row, value, weight]) => [chart.rows[row], chart.columns[column], number(value), number(weight)]);
      return { head: ["teacher", "student", "solve rate", "tasks"], rows };
    }
    const rows = chart.lives.map((life) => [life.id, chart.rows[life.row], number(life.start), life.alive ? "–" : number(life.end), life.operator, life.parents.join(", ")]);
    return { head: ["member", "slot", "born at step", "left at step", "operator", "parents"], rows };
  }

  function fillTable(slot, chart) {
    const { head, rows } = tableOf(chart);
    const table = document.createElement("table");
    const top = table.createTHead().insertRow();
    top.append(...head.map((name) => Object.assign(document.createElement("th"), { scope: "col", textContent: name })));
    const body = table.createTBody();
    for (const row of rows) {
      const line = body.insertRow();
      for (const value of row) line.insertCell().textContent = value;
    }
    slot.replaceChildren(table);
  }

  // ---- drawing and events --------------------------------------------------------------------------------------------
  const boxes = [...document.querySelectorAll("[data-figure]")];
  function drawNext(at) {
    const started = performance.now();
    while (at < boxes.length && performance.now() - started < 30) draw(boxes[at++]);
    if (at < boxes.length) setTimeout(drawNext, 0, at);
    else document.documentElement.dataset.drawn = String(boxes.length);
  }
  new ResizeObserver(() => drawn.forEach((chart) => chart.resize())).observe(document.body);
  for (const details of document.querySelectorAll("details.numbers")) {
    details.addEventListener("toggle", () => {
      const slot = details.querySelector(".table");
      if (details.open && !slot.firstChild) fillTable(slot, charts[slot.dataset.table]);
    });
  }
  for (const link of document.querySelectorAll("nav.jump a")) {
    link.addEventListener("click", () => {
      const fold = document.querySelector(link.getAttribute("href") + " > details.fold");
      if (fold) fold.open = true;
    });
  }
  window.addEventListener("beforeprint", () => document.querySelectorAll("details.fold").forEach((fold) => { fold.open = true; }));
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawNext(0));
  drawNext(0);

  // ---- a page of the dashboard is refreshed while its run is in progress -------------------------------------------------
  const period_ms = 1000 * Number(document.body.dataset.refresh || 0);
  if (!period_ms) return;
  const status = document.getElementById("live-status"), button = document.getElementById("live");
  let paused = false, failures = 0, seen = document.getElementById("figures").textContent;

  // Updates this page from a newer copy: texts and tables by their id, figures by their data. If the new copy has other
  // parts (a first step, another run), the page is reloaded.
  function update(page) {
    const parts = (of) => [...of.querySelectorAll("[data-live], [data-figure]")].map((part) => part.id || part.dataset.figure).join();
    if (parts(page) !== parts(document) && !document.querySelector("input:checked")) { location.reload(); return false; }
    for (const old of document.querySelectorAll("[data-live]")) {
      const fresh = page.getElementById(old.id);
      if (fresh && fresh.innerHTML !== old.innerHTML && !old.contains(document.activeElement)) old.replaceChildren(...fresh.childNodes);
    }
    const text = page.getElementById("figures").textContent;
    if (text === seen) return false;
    seen = text;
    charts = JSON.parse(text);
    drawNext(0);
    for (const slot of document.querySelectorAll(".numbers .table")) if (slot.firstChild) fillTable(slot, charts[slot.dataset.table]);
    return true;
  }

  async function poll() {
    if (!paused && !document.hidden) {
      try {
        const answer = await fetch(location.href, { cache: "no-store" });
        if (!answer.ok) throw new Error(String(answer.status));
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        failures = 0;
        if (update(page)) status.textContent = "Updated " + new Date().toLocaleTimeString("en-GB");
        if (!page.body.dataset.refresh) {
          status.textContent = "The run has ended; this is its last state.";
          button.hidden = true;
          return;
        }
      } catch (error) {
        failures += 1;
        status.textContent = "No answer from the dashboard; is it still running?";
      }
    }
    setTimeout(poll, period_ms * Math.min(1 + failures, 6));
  }

  button.hidden = false;
  button.addEventListener("click", () => {
    paused = !paused;
    button.setAttribute("aria-pressed", String(paused));
    button.textContent = paused ? "Resume" : "Pause";
    status.textContent = paused ? "Paused." : "Live.";
  });
  setTimeout(poll, period_ms);
})();
