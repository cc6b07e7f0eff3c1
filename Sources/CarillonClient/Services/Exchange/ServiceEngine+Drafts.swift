import CarillonBasics
import CarillonWire

/// The replies whose files are being uploaded. The next run continues unfinished uploads from their offset.
extension ServiceEngine {
    /// Makes a draft of the reply of a handler, and stores it unless it is sent at once.
    func draft(_ reply: ServiceReply, of number: Int64, for id: String) async throws -> ReplyDraft {
        let names = try Self.names(of: reply.attachments)
        guard reply.value.isValid else {
            throw ServiceError(.serviceParametersInvalid, "A result is simple, or an array or object of simple values.")
        }
        let draft = ReplyDraft(
            payload: SealedPayload(.value(reply.value)).bytes,
            files: names.map { path, name in .init(path: box.store.paths.kept(path), name: name) })
        if !draft.files.isEmpty || draft.payload.count > ServiceFiles.inlineBytes {
            try await storing(for: id) { try await box.save(draft, of: number) }
        }
        return draft
    }

    /// Uploads the files of a reply to the server. If the consumer cancels the request, the uploads that have begun are removed.
    func uploadFilesUnlessCancelled(
        _ draft: ReplyDraft, of number: Int64, for id: String, to peer: ServicePeer
    ) async throws -> ServiceFiles.Uploaded {
        guard !draft.files.isEmpty else { return ServiceFiles.Uploaded() }
        // The task ends with the uploads; a cancellation of the request or of this task cancels it.
        let uploading = Task { try await self.uploadFiles(of: draft, number: number, for: id, to: peer) }
        incoming[id]?.uploading = uploading
        if incoming[id]?.isUnwanted != false { uploading.cancel() }
        do {
            return try await withTaskCancellationHandler {
                try await uploading.value
            } onCancel: {
                uploading.cancel()
            }
        } catch let error as CancellationError {
            // When the run has ended, the next one continues the uploads.
            if !Task.isCancelled, incoming[id]?.isUnwanted == true { await abandonDraft(of: number) }
            throw error
        }
    }

    /// Uploads the files of a reply to the server. When the run ends, the uploads stop at their offsets.
    func uploadFiles(of known: ReplyDraft, number: Int64, for id: String, to peer: ServicePeer) async throws
        -> ServiceFiles.Uploaded
    {
        var uploaded = ServiceFiles.Uploaded()
        guard !known.files.isEmpty else { return uploaded }
        var draft = known
        var saved = known
        do {
            try await files.cleared()
            let earlier = try known.uploads.isEmpty ? [] : files.attachments.uploads()
            let begun = known.files.map { file in earlier.first { $0.id == file.upload } }
            let rest = zip(known.files, begun).filter { $1 == nil }.map { path(of: $0.0) }
            let restLength = try await ServiceFiles.sealedLength(of: rest)
            let meter = providerMeter(.sending, of: id, begun.reduce(restLength) { $0 + ($1?.length ?? 0) })
            for place in known.files.indices {
                let path = self.path(of: known.files[place])
                let upload: AttachmentUpload
                if let begun = begun[place] {
                    upload = begun
                } else {
                    providerListeners.notify([.didStartSending(to: ServiceApplication(peer), filename: path, id: id)])
                    upload = try await storing(for: id) {
                        try await files.attachments.upload(
                            path, for: [.device(peer.device)], lifetime: .seconds(ServiceBox.resultSeconds))
                    }
                    health.fileWritten()
                    draft.files[place].upload = upload.id
                }
                uploaded.uploads.append(upload)
                let present = draft
                if present != saved { try await storing(for: id) { try await box.save(present, of: number) } }
                saved = present
                let manifest = try await storing(for: id) { try await ServiceFiles.manifest(of: upload, meter) }
                uploaded.files.append(SealedPayload.File(path: known.files[place].name, manifest: manifest))
            }
            return uploaded
        } catch {
            let fault = error as? PushError
            if error is CancellationError || fault?.code == .cancelled {
                // The next run cannot continue an upload that was not stored.
                files.cancelUploads(
                    ServiceFiles.Uploaded(uploads: uploaded.uploads.filter { !saved.uploads.contains($0.id) }))
                throw CancellationError()
            }
            files.cancelUploads(uploaded)
            guard let fault else { throw error }
            throw ServiceError(fault)
        }
    }

    func path(of file: ReplyDraft.File) -> String { box.store.paths.path(file.path) }

    /// Removes the uploads of a reply that no consumer waits for.
    func abandonDraft(of number: Int64) async {
        await storage.change("abandon reply") { [weak self, box] in
            if let draft = try await box.draft(of: number) { try await self?.removeUploads(draft.uploads) }
        }
    }

    private func removeUploads(_ ids: Set<String>) throws {
        guard !ids.isEmpty else { return }
        files.cancelUploads(ServiceFiles.Uploaded(uploads: try files.attachments.uploads().filter { ids.contains($0.id) }))
    }
}
