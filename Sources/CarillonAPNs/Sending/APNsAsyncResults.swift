/// The results of a batch whose recipients come one after the other, one result for each, in the order of the answers. It
/// can be read once: reading it sends.
public struct APNsAsyncResults<Recipients: AsyncSequence & Sendable>: AsyncSequence, Sendable
where Recipients.Element: APNsRecipient {
    /// One result.
    public typealias Element = APNsResult<Recipients.Element>
    /// What the source throws.
    public typealias Failure = Recipients.Failure

    let client: APNsClient
    let prepared: PreparedNotification
    let recipients: Recipients

    /// Begins to send.
    public func makeAsyncIterator() -> Iterator {
        Iterator(flow: RecipientFlow(client: client, prepared: prepared, recipients: recipients))
    }

    /// Reads results.
    public struct Iterator: AsyncIteratorProtocol {
        let flow: RecipientFlow<Recipients>
        private var ready: [Element] = []
        private var nextReady = 0

        init(flow: RecipientFlow<Recipients>) { self.flow = flow }

        /// The next result; nil after the last.
        public mutating func next() async throws(Failure) -> Element? { try await next(isolation: #isolation) }

        /// The next result; nil after the last.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(Failure) -> Element? {
            while nextReady == ready.count {
                guard let results = try await flow.next() else { return nil }
                ready = results
                nextReady = 0
            }
            defer { nextReady += 1 }
            return ready[nextReady]
        }
    }
}
