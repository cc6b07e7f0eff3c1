/// The results of a batch whose recipients come one after the other, one result for each, in the order of the answers. It
/// can be read once: reading it sends.
///
/// No result is dropped. At most ``APNsClient/Configuration/batchWindow`` recipients are read ahead of the results, also when reading stops.
public struct APNsAsyncResults<Recipients: AsyncSequence & Sendable>: AsyncSequence, Sendable
where Recipients.Element: APNsRecipient {
    /// One result.
    public typealias Element = APNsResult<Recipients.Element>
    /// What the source throws.
    public typealias Failure = Recipients.Failure

    private let flow: RecipientFlow<Recipients>

    init(_ flow: RecipientFlow<Recipients>) { self.flow = flow }

    /// Begins to read. A second iterator goes on where the first stands.
    public func makeAsyncIterator() -> Iterator { Iterator(flow: flow) }

    /// Reads results.
    public struct Iterator: AsyncIteratorProtocol {
        let flow: RecipientFlow<Recipients>

        /// The next result; nil after the last.
        public mutating func next() async throws(Failure) -> Element? { try await next(isolation: #isolation) }

        /// The next result; nil after the last.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(Failure) -> Element? {
            try await flow.next()
        }
    }
}
