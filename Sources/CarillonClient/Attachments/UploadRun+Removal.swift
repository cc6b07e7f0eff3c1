/// Removes uploads that were given up from the server.
extension UploadRun {
    private static let patience = Duration.seconds(600)

    /// Has the server remove an upload that was given up, over cuts, for up to ten minutes. The state of the upload goes with the server's
    /// answer; without an answer the next run asks again.
    ///
    /// - Parameter first: Comes with the end of the first attempt.
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
            // Only a cancellation ends this: the store has gone.
        }
    }

    /// Asks the server once to remove an upload that was given up.
    ///
    /// - Returns: Whether the server answered, and nothing is left of the upload.
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
            // It may have been begun, and the answer lost: the same again says where it is.
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
