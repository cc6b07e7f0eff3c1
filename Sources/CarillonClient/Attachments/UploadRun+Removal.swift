/// The removal of cancelled uploads from the server.
extension UploadRun {
    private static let patience = Duration.seconds(600)

    /// Requests the server to remove a cancelled upload, with retries for up to ten minutes. The state of the upload is removed
    /// with the server's answer. Without an answer the next run repeats the request.
    ///
    /// - Parameter first: A result that is set at the end of the first attempt.
    func remove(_ state: TransferFolder.UploadState, first: PendingResult<Void>) async {
        let end = ContinuousClock.now + Self.patience
        defer { first.resume(.success(())) }
        do {
            try await server.persist { () async throws -> TransferAPI.Step<Void> in
                let isOver = await removeOnce(state)
                first.resume(.success(()))
                guard !isOver, ContinuousClock.now < end else { return .done(()) }
                return .later(hint: nil, hasMoved: false)
            }
        } catch {
            // Only a cancellation ends the retries: the store was deallocated.
        }
    }

    /// Requests the server once to remove a cancelled upload.
    ///
    /// - Returns: Whether the server answered, and the state of the upload was removed.
    @discardableResult
    func removeOnce(_ state: TransferFolder.UploadState) async -> Bool {
        guard await isRemoved(state) else { return false }
        folder.remove(.upload, id)
        return true
    }

    /// Returns whether the server answered that the upload is removed or does not exist.
    private func isRemoved(_ state: TransferFolder.UploadState) async -> Bool {
        var location = state.location
        if location == nil {
            // The answer to the creation may be lost: the same request returns the location.
            switch try? await begin(state, ChunkSeal.sealedLength(of: state.length)) {
            case .success(let begun): location = begun.location
            case .refused: return true
            case .later, nil: return false
            }
        }
        guard let location else { return true }
        switch try? await server.remove(location) {
        case .success, .refused: return true
        case .later, nil: return false
        }
    }
}
