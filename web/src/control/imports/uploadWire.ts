import { api } from "@/api/client";
import { ApiProblem } from "@/api/problem";
import type { Appended, Wire } from "./tus";
import { metadata } from "./tus";

const VERSION = { "Tus-Resumable": "1.0.0" };

function read(response: Response): Appended {
  const operation = response.headers.get("Holdfast-Operation")?.split("/").at(-1);
  return { offset: Number(response.headers.get("Upload-Offset")), operation: operation ? Number(operation) : null };
}

export interface Wished {
  source: string;
  /** Of a source that is made by the import. */
  name?: string;
  isStrict: boolean;
}

/** POST /api/admin/uploads: return the id of an upload that was begun */
export async function createUpload(file: File, wished: Wished): Promise<number> {
  const header = {
    "upload-length": file.size,
    "upload-metadata": metadata({ source: wished.source, filename: file.name, name: wished.name, strict: wished.isStrict ? "1" : undefined }),
    "Tus-Resumable": "1.0.0",
  };
  const { response } = await api.POST("/api/admin/uploads", { params: { header } });
  return Number(response.headers.get("Location")?.split("/").at(-1));
}

/** HEAD and PATCH /api/admin/uploads/{id} */
export const uploadWire: Wire = {
  async offset(id, signal) {
    const response = await fetch(`/api/admin/uploads/${id}`, { method: "HEAD", credentials: "same-origin", headers: VERSION, signal });
    if (response.status === 404 || response.status === 410) return null;
    if (!response.ok) throw await ApiProblem.of(response);
    return read(response);
  },
  async append(id, offset, piece, signal) {
    const { response } = await api.PATCH("/api/admin/uploads/{id}", {
      signal,
      params: { path: { id }, header: { "upload-offset": offset, "Tus-Resumable": "1.0.0" } },
      headers: { "Content-Type": "application/offset+octet-stream" },
      body: "",
      bodySerializer: () => piece,
    });
    return read(response);
  },
};

/** DELETE /api/admin/uploads/{id} */
export async function endUpload(id: number): Promise<void> {
  await api.DELETE("/api/admin/uploads/{id}", { params: { path: { id }, header: { "Tus-Resumable": "1.0.0" } } });
}
