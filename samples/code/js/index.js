export * from "./board.js";
