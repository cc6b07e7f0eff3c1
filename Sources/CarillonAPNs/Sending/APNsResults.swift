/// The results of a batch, one for each recipient, in the order of the answers. It can be read once: reading it sends.
///
/// No result is dropped. While nobody reads, no push is sent but those that are under way, at most
/// ``APNsClient/Configuration/batchWindow``.
///
/// When the reading task is cancelled, no further push begins; those under way are taken back, and each still has its
/// result, which says whether it may have been processed.
public struct APNsResults<Recipients: Sequence>: AsyncSequence where Recipients.Element: APNsRecipient {
    /// One result.
    public typealias Element = APNsResult<Recipients.Element>
    /// Reading never throws.
    public typealias Failure = Never

    private let feed: BatchFeed<Recipients>

    init(_ feed: BatchFeed<Recipients>) { self.feed = feed }

    /// Begins to read. A second iterator goes on where the first stands.
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
