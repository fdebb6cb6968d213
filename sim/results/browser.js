// Draws the charts of a page with Apache ECharts, from their descriptions (sim/results/charts.py).
// A chart that stands takes the place of its still picture; without this script, and on paper, the picture stays.
(() => {
  "use strict";
  const FONT = "system-ui, sans-serif", NARROW = 520, LETTER = 6.4, SMALL = 11; // pixels
  const SYMBOLS = ["circle", "rect", "triangle", "diamond", "path://M0 0H10L5 10Z", "path://M10 0V10L0 5Z", "path://M0 0V10L10 5Z",
    "path://M4 0H6V4H10V6H6V10H4V6H0V4H4Z"];
  const DASHES = ["solid", "dashed", [6, 2, 2, 2], "dotted"];
  const SIGNS = ["○", "□", "△", "◇", "▽", "◁", "▷", "+"], RINGS = ["□", "◯"], BORDERS = ["solid", "dashed", "dashed", "dotted"];
  const X = 0, Y = 1, X2 = 2, Y2 = 3, TEXT = 4; // places in a mark
  const given = JSON.parse(document.getElementById("charts").textContent);
  const style = () => getComputedStyle(document.documentElement);
  const isThere = value => value !== null && value !== undefined && !Number.isNaN(value);

  async function library() {
    const packed = Uint8Array.from(atob(document.getElementById("echarts").textContent.trim()), letter => letter.charCodeAt(0));
    const code = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
    const script = document.createElement("script");
    script.textContent = code + ";window.echarts=echarts";
    document.head.append(script);
  }

  function palette() {
    const of = name => style().getPropertyValue(name).trim();
    return { ink: of("--ink"), soft: of("--soft"), line: of("--line"), paper: of("--paper"), panel: of("--panel"),
      series: [...Array(8).keys()].map(number => of(`--c${number}`)) };
  }

  // ------------------------------------------------------------------ an option of ECharts from a description

  function option(chart, width, colours) {
    const narrow = width < NARROW, out = { animation: false, grid: [], xAxis: [], yAxis: [], title: [], series: [], dataZoom: [],
      textStyle: { fontFamily: FONT }, legend: { show: false, data: named(chart) } };
    let top = 0;
    chart.panels.forEach((panel, number) => {
      const lines = Math.max(1, Math.ceil(heading(panel).length * LETTER / (width - 8))), above = isAbove(panel.y, width);
      const names = panel.y.names.length, head = heading(panel) ? 16 * lines + 8 : 6;
      const height = names ? Math.max(2, names) * (above ? 36 : 22) : narrow ? 130 : 170;
      out.title.push({ text: heading(panel), left: 0, top: top + 2, padding: 0, textStyle: { fontSize: 12, fontWeight: "normal",
        color: colours.ink, width: width - 8, overflow: "break", lineHeight: 16 } });
      const widest = Math.max(0, ...panel.y.names.map(name => name.length)) * LETTER;
      const left = names ? (above ? 4 : widest + 12) : 52;
      out.grid.push({ left, right: 18, top: top + head, height });
      out.xAxis.push(axis(panel.x, number, colours, narrow ? 3 : 7, false, Boolean(names)));
      out.yAxis.push(axis(panel.y, number, colours, 5, above, true));
      top += head + height + (panel.x.title ? 44 : 26);
    });
    const time = zoomed(chart);
    if (time.length) {
      out.dataZoom.push({ type: "inside", xAxisIndex: time, zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false, filterMode: "none",
        preventDefaultMouseMove: false });
      out.dataZoom.push({ type: "slider", xAxisIndex: time, left: 52, right: 18, top: top, height: 18, filterMode: "none",
        showDetail: false, brushSelect: false, borderColor: colours.line, fillerColor: "rgba(128,128,128,0.2)",
        handleStyle: { color: colours.paper, borderColor: colours.soft }, dataBackground: { lineStyle: { opacity: 0 }, areaStyle: { opacity: 0 } },
        selectedDataBackground: { lineStyle: { opacity: 0 }, areaStyle: { opacity: 0 } }, moveHandleSize: 4 });
      out.axisPointer = { link: [{ xAxisIndex: time }] };
      top += 26;
    }
    const isRead = chart.series.some(series => series.shape === "line");
    out.tooltip = { trigger: isRead ? "axis" : "item", confine: true, backgroundColor: colours.panel, borderColor: colours.line,
      textStyle: { color: colours.ink, fontSize: 12 }, axisPointer: { type: "line", lineStyle: { color: colours.soft } },
      formatter: found => told(chart, Array.isArray(found) ? found : [found]), extraCssText: "max-width:min(30rem,90vw);white-space:normal" };
    out.series = chart.series.map((series, number) => drawn(chart, series, number, colours));
    return { option: out, height: top };
  }

  const heading = panel => [panel.title, panel.y.title && !panel.y.names.length ? `[${panel.y.title}]` : ""].filter(Boolean).join(" ");
  const isAbove = (own, width) => Math.max(0, ...own.names.map(name => name.length)) * LETTER > width * 0.36;
  const zoomed = chart => chart.zoomGroup ? chart.panels.flatMap((panel, number) => panel.x.names.length ? [] : [number]) : [];
  const named = chart => [...new Set(chart.series.filter(series => series.name).map(series => series.name))];

  function axis(own, number, colours, most, above, split) {
    const rows = own.names.length, places = [...Array(rows).keys()], isX = own.place === "x";
    const label = rows ? { color: colours.ink, fontSize: SMALL, formatter: value => own.names[value] ?? "", customValues: places }
      : { color: colours.ink, fontSize: SMALL, hideOverlap: true, formatter: value => `${tick(value)}${own.suffix}`,
        showMinLabel: isRound(own.low), showMaxLabel: isRound(own.high) };
    if (above) Object.assign(label, { inside: true, align: "left", verticalAlign: "middle", margin: 0, lineHeight: 14,
      formatter: value => `${own.names[value] ?? ""}\n\n` }); // the empty lines are where the bar is
    const ends = rows ? { min: isX ? -0.5 : above ? -0.95 : -0.6, max: rows - (isX ? 0.5 : 0.45) } : { min: own.low, max: own.high };
    return { gridIndex: number, type: "value", name: isX ? own.title : "",
      nameLocation: "middle", nameGap: 26, nameTextStyle: { color: colours.ink, fontSize: SMALL }, splitNumber: most, ...ends,
      scale: !rows, inverse: Boolean(rows) && !isX, axisLabel: label, axisTick: { show: false },
      axisLine: { show: !above, onZero: false, lineStyle: { color: colours.line } },
      splitLine: { show: split && !rows, lineStyle: { color: colours.line } } };
  }
  const isRound = end => !isThere(end) || +Number(end).toPrecision(2) === end; // an end that is none would stand beside a number that is
  const tick = value => String(+Number(value).toPrecision(6));

  function drawn(chart, series, number, colours) {
    const colour = series.colour < 0 ? colours.ink : colours.series[series.colour % 8];
    const panel = series.panel, common = { name: series.name || `#${number}`, xAxisIndex: panel, yAxisIndex: panel, color: colour,
      z: series.shape === "band" ? 1 : 3, data: series.marks.map(mark => ({ value: mark.slice(0, 4).map(value => value ?? NaN), mark })) };
    if (series.shape === "line") {
      const dash = DASHES[(series.order + Math.floor(series.order / 8)) % 4];
      return { ...common, type: "line", showSymbol: false, lineStyle: { width: 1.6, type: dash, color: colour }, emphasis: { focus: "series" } };
    }
    if (series.shape === "point" || series.shape === "ring") {
      const symbol = series.shape === "ring" ? ["rect", "circle"][series.order % 2] : SYMBOLS[series.order % SYMBOLS.length];
      return { ...common, type: "scatter", symbol, symbolSize: series.shape === "ring" ? 20 : 9, silent: series.shape === "ring",
        itemStyle: { color: series.shape === "ring" ? "transparent" : colours.paper, borderColor: colour, borderWidth: 1.8 },
        emphasis: { itemStyle: { color: colour } } };
    }
    const silent = series.shape === "band";
    return { ...common, type: "custom", clip: series.shape !== "tick", silent, encode: { x: [X, X2], y: [Y, Y2] },
      tooltip: { show: !silent }, renderItem: (params, api) => shape(series, series.marks[params.dataIndex], params, api, colour, colours) };
  }

  function shape(series, mark, params, api, colour, colours) {
    const around = params.coordSys, right = around.x + around.width, bottom = around.y + around.height;
    const at = (x, y) => api.coord([x ?? 0, y ?? 0]);
    const [x, y] = at(mark[X], mark[Y]), [x2, y2] = at(mark[X2] ?? mark[X], mark[Y2] ?? mark[Y]);
    const box = { x: Math.min(x, x2), y: Math.min(y, y2), width: Math.max(Math.abs(x2 - x), 1), height: Math.abs(y2 - y) };
    const stroke = (from, to, more = {}) => ({ type: "line", shape: { x1: from[0], y1: from[1], x2: to[0], y2: to[1] },
      style: { stroke: colour, lineWidth: 1, ...more } });
    switch (series.shape) {
      case "box": return { type: "rect", shape: box, style: { fill: colour }, emphasis: { style: { opacity: 0.75 } } };
      case "span": return stroke([x, y], [x2, y], { lineWidth: 3 });
      case "rule": return stroke([x, around.y], [x, bottom], { lineDash: [3, 3] });
      case "tick": return isThere(mark[Y]) ? stroke([x, y - 6], [x, y + 6], { lineWidth: 2 }) : stroke([x, bottom - 4], [x, bottom + 4]);
      default: { // band
        const [begin, end] = [isThere(mark[X]) ? x : around.x, isThere(mark[X2]) ? x2 : right];
        return { type: "rect", style: { fill: colours.line, opacity: 0.35 },
          shape: { x: begin, y: around.y, width: end - begin, height: around.height } };
      }
    }
  }

  // ------------------------------------------------------------------ what is read

  const safe = text => window.echarts.format.encodeHTML(String(text));
  const plain = (chart, series, mark) => mark[TEXT] || [series.name, isThere(mark[Y]) ? tick(mark[Y]) : ""].filter(Boolean).join(": ");

  function told(chart, found) {
    const rows = found.filter(row => row.seriesIndex < chart.series.length);
    if (!rows.length) return "";
    const isItem = rows.length === 1 && chart.series[rows[0].seriesIndex].shape !== "line";
    if (isItem) return safe(plain(chart, chart.series[rows[0].seriesIndex], rows[0].data.mark));
    const lines = rows.filter(row => chart.series[row.seriesIndex].shape === "line");
    const head = lines.length ? `${tick(lines[0].data.mark[X])} s<br>` : "";
    return head + lines.map(row => `${row.marker}${safe(row.seriesName)}: <b>${tick(row.data.mark[Y])}</b>`).join("<br>");
  }

  // ------------------------------------------------------------------ a figure

  const states = [];

  function stand(figure, chart) {
    const place = figure.querySelector(".chart"), state = { figure, chart, place, instance: null };
    chart.panels.forEach(panel => { panel.x.place = "x"; panel.y.place = "y"; });
    figure.classList.add("stands");
    redraw(state);
    legend(state);
    place.addEventListener("keydown", event => pressed(state, event));
    states.push(state);
    return state;
  }

  function redraw(state) {
    const width = state.place.clientWidth, made = option(state.chart, width, palette());
    state.width = width;
    state.instance?.dispose();
    state.place.style.height = `${made.height}px`;
    state.instance = window.echarts.init(state.place, null, { renderer: "svg", width, height: made.height });
    state.instance.setOption(made.option);
    state.place.querySelector("svg")?.setAttribute("aria-hidden", "true");
    if (state.chart.zoomGroup) {
      state.instance.group = state.chart.zoomGroup;
      window.echarts.connect(state.chart.zoomGroup);
    }
    state.instance.on("legendselectchanged", event => state.figure.querySelectorAll(".legend button").forEach(button =>
      button.setAttribute("aria-pressed", String(event.selected[button.dataset.name] !== false))));
  }

  function legend(state) {
    const names = named(state.chart), list = state.figure.querySelector(".legend");
    if (names.length < 2 && !state.chart.series.some(series => ["rule", "tick", "band"].includes(series.shape))) return;
    list.append(...names.map(name => {
      const button = document.createElement("button"), series = state.chart.series.find(series => series.name === name);
      const sign = document.createElement("span"), colour = series.colour < 0 ? "var(--ink)" : `var(--c${series.colour % 8})`;
      const shapes = new Set(state.chart.series.filter(row => row.name === name).map(row => row.shape));
      sign.setAttribute("aria-hidden", "true");
      if (shapes.has("ring") || shapes.has("point")) {
        sign.className = "sign";
        sign.dataset.sign = shapes.has("point") ? SIGNS[series.order % SYMBOLS.length] : RINGS[series.order % 2];
        sign.style.color = colour;
      } else if (shapes.has("line") || shapes.has("rule")) {
        sign.className = "stroke";
        sign.style.borderTop = `2px ${series.shape === "rule" ? "dashed" : BORDERS[(series.order + Math.floor(series.order / 8)) % 4]} ${colour}`;
      } else {
        sign.className = "area";
        sign.style.background = series.shape === "band" ? "var(--line)" : colour;
      }
      button.type = "button";
      button.dataset.name = name;
      button.setAttribute("aria-pressed", "true");
      button.append(sign, name);
      button.addEventListener("click", () => state.instance.dispatchAction({ type: "legendToggleSelect", name }));
      return button;
    }));
  }

  // Arrows read mark by mark; + and - zoom, 0 shows all.
  function pressed(state, event) {
    const zoom = state.instance.getOption().dataZoom?.[0], step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) {
      const marks = state.chart.series.flatMap((series, seriesIndex) =>
        ["band", "ring"].includes(series.shape) ? [] : series.marks.map((mark, dataIndex) => ({ series, mark, seriesIndex, dataIndex })));
      if (!marks.length) return;
      state.reading = ((state.reading ?? (step > 0 ? -1 : 0)) + step + marks.length) % marks.length;
      const { series, mark, seriesIndex, dataIndex } = marks[state.reading];
      state.instance.dispatchAction({ type: "showTip", seriesIndex, dataIndex });
      const at = series.shape === "line" ? `, ${tick(mark[X])} ${state.chart.panels[series.panel].x.title}` : "";
      state.figure.querySelector(".read").textContent = plain(state.chart, series, mark) + at;
    } else if (zoom && "+-0=".includes(event.key)) {
      const middle = (zoom.start + zoom.end) / 2, half = (zoom.end - zoom.start) / 2 * (event.key === "-" ? 2 : 0.5);
      const [start, end] = event.key === "0" ? [0, 100] : [Math.max(0, middle - half), Math.min(100, middle + half)];
      state.instance.dispatchAction({ type: "dataZoom", start, end });
    } else return;
    event.preventDefault();
  }

  async function begin() {
    await library();
    document.querySelectorAll("figure[data-chart]").forEach(figure => stand(figure, given[figure.dataset.chart]));
    new ResizeObserver(() => states.filter(state => state.place.clientWidth && state.place.clientWidth !== state.width).forEach(redraw))
      .observe(document.body);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => states.forEach(redraw));
    return states.length;
  }

  window.reportCharts = { states, ready: begin() };
})();
