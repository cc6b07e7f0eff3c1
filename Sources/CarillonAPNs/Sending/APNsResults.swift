/// The results of a batch, one for each recipient, in the order of the responses. Reading the results sends the pushes. The
/// sequence can be read once.
///
/// No result is dropped. While no result is read, only the pushes that are already under way are sent, at most
/// ``APNsClient/Configuration/batchWindow``.
///
/// When the reading task is cancelled, no further push is started. Pushes that are under way are withdrawn. Each of them
/// still has a result, which reports whether the push may have been processed.
public struct APNsResults<Recipients: Sequence>: AsyncSequence where Recipients.Element: APNsRecipient {
    /// One result.
    public typealias Element = APNsResult<Recipients.Element>
    /// Reading never throws.
    public typealias Failure = Never

    private let feed: BatchFeed<Recipients>

    init(_ feed: BatchFeed<Recipients>) { self.feed = feed }

    /// Starts to read. A second iterator continues after the results that the first one read.
    public func makeAsyncIterator() -> Iterator { Iterator(feed: feed) }

    /// Reads results.
    public struct Iterator: AsyncIteratorProtocol {
        let feed: BatchFeed<Recipients>

        /// The next result; nil after the last.
        public mutating func next() async -> APNsResult<Recipients.Element>? { await next(isolation: #isolation) }

        /// The next result; nil after the last.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> APNsResult<Recipients.Element>? {
            await feed.next()
        }
    }
}
