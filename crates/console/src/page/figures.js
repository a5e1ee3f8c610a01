// Numbers as people read them.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/// A number with at most three significant digits, and thousands apart.
export const count = (value) => {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (Math.abs(value) >= 1000 || Number.isInteger(value)) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(3)));
};

export const bytes = (value) => {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  let unit = 0;
  let scaled = value;
  while (Math.abs(scaled) >= 1024 && unit < UNITS.length - 1) {
    scaled /= 1024;
    unit += 1;
  }
  return `${Number(scaled.toPrecision(3)).toLocaleString("en-US")} ${UNITS[unit]}`;
};

/// A duration in microseconds.
export const micros = (value) => {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value < 1000) return `${count(value)} µs`;
  if (value < 1_000_000) return `${count(value / 1000)} ms`;
  return seconds(value / 1_000_000);
};

export const millis = (value) => (value < 1 ? `${count(value)} ms` : micros(value * 1000));

export const seconds = (value) => {
  if (value < 120) return `${count(value)} s`;
  if (value < 7200) return `${count(Math.round(value / 60))} min`;
  if (value < 172_800) return `${count(Math.round(value / 3600))} h`;
  return `${count(Math.round(value / 86_400))} d`;
};

/// A time of day, or a date with it if it is not today's.
export const moment = (date) => {
  const two = (number) => String(number).padStart(2, "0");
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  if (date.toDateString() === new Date().toDateString()) return time;
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}`;
};
