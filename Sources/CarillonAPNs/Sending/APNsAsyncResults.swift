/// The results of a batch whose recipients come from an asynchronous sequence, one result for each recipient, in the order of
/// the responses. Reading the results sends the pushes. The sequence can be read once.
///
/// No result is dropped. At most ``APNsClient/Configuration/batchWindow`` recipients are read ahead of the results, also when
/// the reader stops.
public struct APNsAsyncResults<Recipients: AsyncSequence & Sendable>: AsyncSequence, Sendable
where Recipients.Element: APNsRecipient {
    /// One result.
    public typealias Element = APNsResult<Recipients.Element>
    /// The error of the source.
    public typealias Failure = Recipients.Failure

    private let flow: RecipientFlow<Recipients>

    init(_ flow: RecipientFlow<Recipients>) { self.flow = flow }

    /// Starts to read. A second iterator continues after the results that the first one read.
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
