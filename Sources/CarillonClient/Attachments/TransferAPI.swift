import CarillonWire

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The server's API for attachments, with the credential of this device or the key of a program.
struct TransferAPI: Sendable {
    let api: ServerAPI
    let files: any FileTransport
    /// Returns the credential; nil while the device is not registered.
    let bearer: @Sendable () -> String?

    /// Sends one request.
    ///
    /// - Parameters:
    ///   - isFile: Whether the body of a response is passed to `received`.
    ///   - success: The documented form of a success.
    /// - Throws: The ``PushError`` of `received`, and `CancellationError`.
    func send<Value>(
        _ method: String, _ path: String, _ headers: [(name: String, value: String)] = [],
        body: (file: DiskFile, range: Range<Int64>)? = nil, sent: @escaping @Sendable (Int64) -> Void = { _ in },
        isFile: @escaping @Sendable (WebAnswer) -> Bool = { _ in false },
        received: @escaping @Sendable (WebAnswer, Data) async throws(PushError) -> Void = { _, _ in },
        expecting success: SuccessForm<Value>
    ) async throws -> ServerAPI.Outcome<Value> {
        guard let bearer = bearer() else { return .later(hint: nil) }
        guard let address = WebAddress(http: api.base + path) else {
            throw PushError(.protocolViolated, "The server gave a place that is no address.")
        }
        let request = FileRequest(
            method: method, address: address, bearer: bearer, headers: headers, body: body, isFile: isFile)
        let answer: ServerAnswer<Value>
        do {
            let response = try await files.exchange(request, sent: sent, received: received)
            answer = await api.decide(on: response, from: address, isHead: method == "HEAD", expecting: success)
        } catch let fault as TransportFault {
            try Task.checkCancellation()
            answer = .unreachable(ConnectionFailure(fault, at: address.origin))
        }
        return api.outcome(answer, at: address, bearer: bearer)
    }

    /// Requests the server to remove an attachment or an incomplete upload.
    func remove(_ path: String) async throws -> ServerAPI.Outcome<Void> {
        try await send("DELETE", path, expecting: .noContent)
    }

    /// The result of one step of a transfer.
    enum Step<Value> {
        case done(Value)
        /// The next step follows at once.
        case next(hasMoved: Bool)
        /// The step is repeated later. The wait is shorter if bytes were moved meanwhile.
        case later(hint: Duration?, hasMoved: Bool)
    }

    /// Repeats a step until it is done.
    func persist<Value>(_ step: () async throws -> Step<Value>) async throws -> Value {
        var schedule = ClientReconnectSchedule(api.backOff)
        while true {
            try Task.checkCancellation()
            switch try await step() {
            case .done(let value): return value
            case .next(let hasMoved):
                if hasMoved { schedule.succeeded() }
            case .later(let hint, let hasMoved):
                if hasMoved { schedule.succeeded() }
                try await api.wait(&schedule, hint: hint)
            }
        }
    }
}

extension PushError {
    /// The error of a transfer that the server refuses.
    init(_ refusal: ServerRefusal) {
        self.init(.attachmentRefused, refusal.detail, serverCode: refusal.problem?.code)
    }
}
