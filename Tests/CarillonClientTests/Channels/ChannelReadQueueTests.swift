import Testing

@testable import CarillonClient

@Suite(.timeLimit(.minutes(5)))
struct ChannelReadQueueTests {
    private static func message(_ position: Int64) -> BufferedMessage {
        BufferedMessage(position: position, id: "\(position)", body: [], coding: nil)
    }

    private static func claimed(lastStored: Int64 = 0) -> ChannelReadQueue {
        let queue = ChannelReadQueue(lastStored: lastStored)
        _ = queue.acquire()
        return queue
    }

    /// Reads everything, in order, with pages from a store of these messages, until the channel is closed.
    private func drain(_ queue: ChannelReadQueue, _ stored: [Int64] = []) async -> [String] {
        var seen: [String] = []
        while true {
            switch await queue.next(inRun: queue.run) {
            case .entry(let entry):
                queue.remove(entry)
                switch entry {
                case .message(let message): seen.append(message.id)
                case .change(.notifyError(let code), _): seen.append("error \(code)")
                case .change: return seen
                case .missed(let count): seen.append("missed \(count)")
                }
            case .notLoaded(let after, let upTo):
                seen.append("load")
                let page = stored.filter { $0 > after }.prefix(ChannelReadQueue.pageLimit).map(Self.message)
                queue.fill(page, after: after, upTo: upTo)
            case .ended:
                return seen + ["ended"]
            }
        }
    }

    @Test func `messages and changes come in the order in which they happened`() async {
        let queue = Self.claimed()
        queue.append(Self.message(1))
        queue.append(.notifyError(code: 1))
        queue.append(Self.message(2))
        queue.append(Self.message(3))
        queue.append(.notifyClosed(token: ""))
        queue.append(Self.message(4))
        #expect(await drain(queue) == ["1", "error 1", "2", "3"])
    }

    @Test func `an unread message outlives any number of changes: the newest are kept, and the others counted`() async {
        let queue = Self.claimed()
        queue.append(Self.message(1))
        for number in 1...(ChannelReadQueue.changesLimit + 9) { queue.append(.notifyError(code: number)) }
        queue.append(.notifyClosed(token: ""))
        let seen = await drain(queue)
        #expect(seen.prefix(2) == ["missed 10", "1"])
        #expect(seen.dropFirst(2) == (11...73).map { "error \($0)" }[...])
    }

    @Test func `drops are reported until the app is done with them, and an entry that the app had is not counted`()
        async
    {
        let queue = Self.claimed()
        queue.append(.notifyError(code: 0))
        let shown = await queue.next(inRun: queue.run)
        #expect(shown == .entry(.change(.notifyError(code: 0), number: 1)))
        for number in 1...(ChannelReadQueue.changesLimit + 2) { queue.append(.notifyError(code: number)) }
        // As an iteration receives it that begins now, after the earlier one was interrupted.
        #expect(await queue.next(inRun: queue.run) == .entry(.missed(count: 3)))
        queue.remove(.change(.notifyError(code: 0), number: 1))
        #expect(await queue.next(inRun: queue.run) == .entry(.missed(count: 2)))
        queue.append(.notifyError(code: 67))
        queue.remove(.missed(count: 2))
        #expect(await queue.next(inRun: queue.run) == .entry(.missed(count: 1)))
        queue.remove(.missed(count: 1))
        #expect(await queue.next(inRun: queue.run) == .entry(.change(.notifyError(code: 4), number: 5)))
    }

    @Test func `messages of an earlier run are loaded page by page, and new messages come after them`() async {
        let stored = Array(1...Int64(ChannelReadQueue.pageLimit) + 6)
        let queue = Self.claimed(lastStored: Int64(ChannelReadQueue.pageLimit) + 5)
        queue.append(.notifyError(code: 1))
        queue.append(Self.message(Int64(ChannelReadQueue.pageLimit) + 6))
        queue.append(.notifyClosed(token: ""))
        let seen = await drain(queue, stored)
        #expect(
            seen == ["load"] + stored.prefix(64).map(String.init) + ["load"]
                + stored.dropFirst(64).prefix(5).map(String.init) + ["error 1"] + ["70"])
    }

    @Test func `messages without a reader take no memory, and are loaded for the next reader`() async {
        let queue = ChannelReadQueue()
        for position in 1...3 { queue.append(Self.message(Int64(position))) }
        queue.append(.notifyClosed(token: ""))
        _ = queue.acquire()
        #expect(await drain(queue, [1, 2, 3]) == ["load", "1", "2", "3"])
    }

    @Test func `the memory of a slow reader is bounded`() async {
        let queue = Self.claimed()
        let all = Array(1...Int64(ChannelReadQueue.pageLimit) + 1)
        for position in all { queue.append(Self.message(position)) }
        queue.append(.notifyClosed(token: ""))
        #expect(await drain(queue, all) == all.prefix(64).map(String.init) + ["load", "65"])
    }

    @Test func `messages that were discarded are not shown`() async {
        let queue = Self.claimed(lastStored: 9)
        queue.append(Self.message(10))
        queue.removeMessages()
        queue.append(.notifyClosed(token: ""))
        #expect(await drain(queue) == [])
    }

    @Test func `a page from which everything was discarded meanwhile is no endless wait`() async {
        let queue = Self.claimed(lastStored: 9)
        queue.append(.notifyClosed(token: ""))
        #expect(await drain(queue, []) == ["load"])
    }

    @Test func `a page that was loaded twice is shown once`() async {
        let queue = Self.claimed(lastStored: 2)
        let page = [Self.message(1), Self.message(2)]
        queue.fill(page, after: 0, upTo: 2)
        queue.remove(.message(page[0]))
        queue.fill(page, after: 0, upTo: 2)
        queue.append(.notifyClosed(token: ""))
        #expect(await drain(queue) == ["2"])
    }

    @Test func `a waiting reader receives new entries, and ends with its run and not before`() async {
        let queue = Self.claimed()
        let run = queue.run
        async let first = queue.next(inRun: run)
        queue.append(Self.message(1))
        #expect(await first == .entry(.message(Self.message(1))))
        queue.remove(.message(Self.message(1)))
        let over = queue.endRun()
        #expect(over == run)
        #expect(queue.run == run + 1)
        async let second = queue.next(inRun: run)
        queue.endIterations(of: over)
        #expect(await second == .ended)
        #expect(await queue.next(inRun: run) == .ended)
        queue.append(Self.message(2))
        #expect(await queue.next(inRun: queue.run) == .entry(.message(Self.message(2))))
    }

    @Test func `a reader with a cancelled task ends, and leaves new entries to the next reader`() async {
        let queue = Self.claimed()
        let reader = Task { await queue.next(inRun: queue.run) }
        reader.cancel()
        #expect(await reader.value == .ended)
        queue.append(Self.message(1))
        #expect(await queue.next(inRun: queue.run) == .entry(.message(Self.message(1))))
    }
}
