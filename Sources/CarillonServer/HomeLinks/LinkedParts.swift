import CarillonCore

/// A body that passes over a link in parts. Its reader receives a fault if the link was cut.
struct LinkedParts<Parts: AsyncSequence & Sendable>: AsyncSequence, Sendable
where Parts.Element == [UInt8], Parts.Failure == any Error {
    typealias Element = [UInt8]
    typealias Failure = any Error

    let parts: Parts
    /// Whether the link was cut since the body began.
    let isCut: @Sendable () -> Bool

    struct Iterator: AsyncIteratorProtocol {
        fileprivate var parts: Parts.AsyncIterator
        fileprivate let isCut: @Sendable () -> Bool

        mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> [UInt8]? {
            if isCut() { throw HomeFault.outcomeUnknown }
            let part = try await parts.next(isolation: actor)
            if isCut() { throw HomeFault.outcomeUnknown }
            return part
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(parts: parts.makeAsyncIterator(), isCut: isCut) }
}
