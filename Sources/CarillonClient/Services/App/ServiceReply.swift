/// The reply of a provider to a request.
public struct ServiceReply: Hashable, Sendable {
    public var value: ServiceValue
    /// The paths of the reply's files.
    public var attachments: [String]

    /// - Parameters:
    ///   - value: The result; null if the method has no result.
    ///   - attachments: The paths of files. They are read before the reply is sent, and can be removed after
    ///     ``ServiceProviderEvent/didFinishSending(to:attachments:id:)``.
    public init(_ value: ServiceValue = .null, attachments: [String] = []) {
        self.value = value
        self.attachments = attachments
    }
}
