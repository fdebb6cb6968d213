// What reports use of Apache ECharts.  `make charts` bundles it into echarts.min.js.gz.
import * as core from "echarts/core";
import { LineChart, ScatterChart, CustomChart } from "echarts/charts";
import {
  AxisPointerComponent, DataZoomInsideComponent, DataZoomSliderComponent, GridComponent, LegendComponent,
  TitleComponent, TooltipComponent,
} from "echarts/components";
import { SVGRenderer } from "echarts/renderers";

core.use([
  AxisPointerComponent, CustomChart, DataZoomInsideComponent, DataZoomSliderComponent, GridComponent, LegendComponent, LineChart,
  ScatterChart, SVGRenderer, TitleComponent, TooltipComponent,
]);
export const { init, connect, format } = core;
