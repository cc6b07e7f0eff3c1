import CarillonWire

/// A file of a request, and its name at the receiver.
package struct NamedFile: Hashable, Sendable {
    package var path: String
    /// Components below the directory of the message; nil to use the name in the path.
    package var name: String?

    package init(path: String, name: String? = nil) {
        self.path = path
        self.name = name
    }
}

extension ServiceClient {
    /// Does the same as ``call(_:of:_:attachments:deadline:foreground:id:)``, with names for the files.
    package func call(
        _ method: ServiceMethod, of address: ServiceApplication, _ parameters: ServiceValue, files: [NamedFile],
        deadline: Duration, foreground: ForegroundPreference
    ) async throws -> ServiceReply {
        let call = ServiceCall(
            id: makeRequestID(), method: method, to: address,
            parameters: parameters, attachments: files.map(\.path), names: files.map(\.name),
            deadline: deadline, foreground: foreground)
        return try await engine.result(of: call)
    }
}
