/// What the server has of an upload that was given up.
extension UploadRun {
    private static let patience = Duration.seconds(600)

    /// Asks the server once to remove an upload. If the server cannot be reached, the upload asks again for ten minutes, in the background;
    /// after them the server removes the upload by its time.
    func remove(_ state: TransferFolder.UploadState) async {
        guard await !isRemoved(state) else { return }
        let end = ContinuousClock.now + Self.patience
        // Ends with the server's answer, or after the patience.
        Task {
            try? await server.persist { () async throws -> TransferServer.Step<Void> in
                guard ContinuousClock.now < end, await !isRemoved(state) else { return .done(()) }
                return .later(hint: nil, hasMoved: false)
            }
        }
    }

    /// Whether the server answered that an upload is removed, or that there is none.
    private func isRemoved(_ state: TransferFolder.UploadState) async -> Bool {
        var location = state.location
        if location == nil {
            // It may have been begun, and the answer lost: the same again says where it is.
            switch try? await begin(state, ChunkSeal.sealedLength(of: state.length)) {
            case .success(let begun): location = begun.location
            case .refused: return true
            case .failed, nil: return false
            }
        }
        guard let location else { return true }
        switch try? await server.remove(location) {
        case .success, .refused: return true
        case .failed, nil: return false
        }
    }
}
