import Testing

@testable import CarillonClient

@Suite(.timeLimit(.minutes(5)))
struct ChannelInboxTests {
    private static func message(_ position: Int64) -> BufferedMessage {
        BufferedMessage(position: position, id: "\(position)", body: [], coding: nil)
    }

    private static func claimed(lastStored: Int64 = 0) -> ChannelInbox {
        let inbox = ChannelInbox(lastStored: lastStored)
        _ = inbox.acquire()
        return inbox
    }

    /// Reads everything, in order, with pages from a store of these messages, until the channel is closed.
    private func drain(_ inbox: ChannelInbox, _ stored: [Int64] = []) async -> [String] {
        var seen: [String] = []
        while true {
            switch await inbox.next(inRun: inbox.run) {
            case .entry(let entry):
                inbox.remove(entry)
                switch entry {
                case .message(let message): seen.append(message.id)
                case .change(.notifyError(let code), _): seen.append("error \(code)")
                case .change: return seen
                case .missed(let count): seen.append("missed \(count)")
                }
            case .notLoaded(let after, let upTo):
                seen.append("load")
                let page = stored.filter { $0 > after }.prefix(ChannelInbox.pageLimit).map(Self.message)
                inbox.fill(page, after: after, upTo: upTo)
            case .ended:
                return seen + ["ended"]
            }
        }
    }

    @Test func `messages and changes come in the order in which they happened`() async {
        let inbox = Self.claimed()
        inbox.append(Self.message(1))
        inbox.append(.notifyError(code: 1))
        inbox.append(Self.message(2))
        inbox.append(Self.message(3))
        inbox.append(.notifyClosed(token: ""))
        inbox.append(Self.message(4))
        #expect(await drain(inbox) == ["1", "error 1", "2", "3"])
    }

    @Test func `an unread message outlives any number of changes: the newest are kept, and the others counted`() async {
        let inbox = Self.claimed()
        inbox.append(Self.message(1))
        for number in 1...(ChannelInbox.changesLimit + 9) { inbox.append(.notifyError(code: number)) }
        inbox.append(.notifyClosed(token: ""))
        let seen = await drain(inbox)
        #expect(seen.prefix(2) == ["missed 10", "1"])
        #expect(seen.dropFirst(2) == (11...73).map { "error \($0)" }[...])
    }

    @Test func `drops are reported until the app is done with them, and an entry that the app had is not counted`()
        async
    {
        let inbox = Self.claimed()
        inbox.append(.notifyError(code: 0))
        let shown = await inbox.next(inRun: inbox.run)
        #expect(shown == .entry(.change(.notifyError(code: 0), number: 1)))
        for number in 1...(ChannelInbox.changesLimit + 2) { inbox.append(.notifyError(code: number)) }
        // As an iteration receives it that begins now, after the earlier one was interrupted.
        #expect(await inbox.next(inRun: inbox.run) == .entry(.missed(count: 3)))
        inbox.remove(.change(.notifyError(code: 0), number: 1))
        #expect(await inbox.next(inRun: inbox.run) == .entry(.missed(count: 2)))
        inbox.append(.notifyError(code: 67))
        inbox.remove(.missed(count: 2))
        #expect(await inbox.next(inRun: inbox.run) == .entry(.missed(count: 1)))
        inbox.remove(.missed(count: 1))
        #expect(await inbox.next(inRun: inbox.run) == .entry(.change(.notifyError(code: 4), number: 5)))
    }

    @Test func `messages of an earlier run are loaded page by page, and new messages come after them`() async {
        let stored = Array(1...Int64(ChannelInbox.pageLimit) + 6)
        let inbox = Self.claimed(lastStored: Int64(ChannelInbox.pageLimit) + 5)
        inbox.append(.notifyError(code: 1))
        inbox.append(Self.message(Int64(ChannelInbox.pageLimit) + 6))
        inbox.append(.notifyClosed(token: ""))
        let seen = await drain(inbox, stored)
        #expect(
            seen == ["load"] + stored.prefix(64).map(String.init) + ["load"]
                + stored.dropFirst(64).prefix(5).map(String.init) + ["error 1"] + ["70"])
    }

    @Test func `messages without a reader take no memory, and are loaded for the next reader`() async {
        let inbox = ChannelInbox()
        for position in 1...3 { inbox.append(Self.message(Int64(position))) }
        inbox.append(.notifyClosed(token: ""))
        _ = inbox.acquire()
        #expect(await drain(inbox, [1, 2, 3]) == ["load", "1", "2", "3"])
    }

    @Test func `the memory of a slow reader is bounded`() async {
        let inbox = Self.claimed()
        let all = Array(1...Int64(ChannelInbox.pageLimit) + 1)
        for position in all { inbox.append(Self.message(position)) }
        inbox.append(.notifyClosed(token: ""))
        #expect(await drain(inbox, all) == all.prefix(64).map(String.init) + ["load", "65"])
    }

    @Test func `messages that were discarded are not shown`() async {
        let inbox = Self.claimed(lastStored: 9)
        inbox.append(Self.message(10))
        inbox.removeMessages()
        inbox.append(.notifyClosed(token: ""))
        #expect(await drain(inbox) == [])
    }

    @Test func `a page from which everything was discarded meanwhile is no endless wait`() async {
        let inbox = Self.claimed(lastStored: 9)
        inbox.append(.notifyClosed(token: ""))
        #expect(await drain(inbox, []) == ["load"])
    }

    @Test func `a page that was loaded twice is shown once`() async {
        let inbox = Self.claimed(lastStored: 2)
        let page = [Self.message(1), Self.message(2)]
        inbox.fill(page, after: 0, upTo: 2)
        inbox.remove(.message(page[0]))
        inbox.fill(page, after: 0, upTo: 2)
        inbox.append(.notifyClosed(token: ""))
        #expect(await drain(inbox) == ["2"])
    }

    @Test func `a waiting reader receives new entries, and ends with its run and not before`() async {
        let inbox = Self.claimed()
        let run = inbox.run
        async let first = inbox.next(inRun: run)
        inbox.append(Self.message(1))
        #expect(await first == .entry(.message(Self.message(1))))
        inbox.remove(.message(Self.message(1)))
        let over = inbox.endRun()
        #expect(over == run)
        #expect(inbox.run == run + 1)
        async let second = inbox.next(inRun: run)
        inbox.endIterations(of: over)
        #expect(await second == .ended)
        #expect(await inbox.next(inRun: run) == .ended)
        inbox.append(Self.message(2))
        #expect(await inbox.next(inRun: inbox.run) == .entry(.message(Self.message(2))))
    }

    @Test func `a reader with a cancelled task ends, and leaves new entries to the next reader`() async {
        let inbox = Self.claimed()
        let reader = Task { await inbox.next(inRun: inbox.run) }
        reader.cancel()
        #expect(await reader.value == .ended)
        inbox.append(Self.message(1))
        #expect(await inbox.next(inRun: inbox.run) == .entry(.message(Self.message(1))))
    }
}
