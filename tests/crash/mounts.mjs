// Small file systems for tests. Mounting needs root, or a sudo that does not ask.
import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import path from "node:path";
import { temporaryFolder } from "../support/server.mjs";

function asRoot(...command) {
  const line = process.getuid() === 0 ? command : ["sudo", "-n", ...command];
  const { status, stderr, error } = spawnSync(line[0], line.slice(1), { encoding: "utf8" });
  if (status !== 0) throw new Error(`${command.join(" ")}: ${(error?.message ?? stderr).trim()}`);
}

export class Mount {
  // kind: "tmpfs" or "ext4" (a file behind a loop device). Throws if it cannot be mounted.
  constructor(kind, megabytes) {
    this.kind = kind;
    this.work = temporaryFolder();
    this.folder = path.join(this.work, "mount");
    this.image = path.join(this.work, "image");
    mkdirSync(this.folder);
    try {
      if (kind === "ext4") {
        asRoot("truncate", "-s", `${megabytes}M`, this.image);
        asRoot("mkfs.ext4", "-q", "-F", "-m", "0", this.image);
        this.mount();
      } else {
        asRoot("mount", "-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", this.folder);
      }
      if (process.getuid() !== 0) asRoot("chown", `${process.getuid()}`, this.folder);
    } catch (error) {
      rmSync(this.work, { recursive: true, force: true });
      throw error;
    }
  }
  // REQUIRES: ext4.
  mount() {
    asRoot("mount", "-o", "loop", this.image, this.folder);
  }
  unmount() {
    asRoot("umount", this.folder);
  }
  remove() {
    this.unmount();
    rmSync(this.work, { recursive: true, force: true });
  }
}
