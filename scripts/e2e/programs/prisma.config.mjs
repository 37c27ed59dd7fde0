// Where Prisma's generator finds the models.
import { defineConfig } from "prisma/config";

export default defineConfig({ schema: "schema.prisma" });
