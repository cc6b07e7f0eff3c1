import Testing

@testable import CarillonClient

struct PopupQueueTests {
    private typealias Action = PopupQueue.Action

    /// An expectation cannot contain a value that a call changes.
    private final class Queue {
        private var queue = PopupQueue()

        var isEmpty: Bool { queue.isEmpty }
        func added(_ key: UpdateKey, _ popup: PushUpdate.Popup) -> [Action] { queue.added(key, popup) }
        func removed(_ key: UpdateKey) -> [Action] { queue.removed(key) }
        func removedAll() -> [Action] { queue.removedAll() }
        func pressed(_ key: UpdateKey) -> [Action] { queue.pressed(key) }
        func resultStored(_ key: UpdateKey) -> [Action] { queue.resultStored(key) }
        func resultNotStored(_ key: UpdateKey) { queue.resultNotStored(key) }
        func progressed(_ key: UpdateKey, to part: Double) -> [Action] { queue.progressed(key, to: part) }
        func downloaded(_ key: UpdateKey, errors: [String]? = nil) -> [Action] { queue.downloaded(key, errors: errors) }
    }

    private func key(_ name: String) -> UpdateKey { UpdateKey(update: name, entry: 1) }

    private func popup(_ style: PushUpdate.Popup.Style, _ object: String? = nil) -> PushUpdate.Popup {
        PushUpdate.Popup(style: style, title: "t", attachment: object.map { .object($0) })
    }

    @Test func `one popup is shown at a time, the gravest next, and none is removed for a graver one`() {
        let queue = Queue()
        let important = popup(.important)
        #expect(queue.added(key("a"), important) == [.show(key("a"), important, .ok)])
        #expect(queue.added(key("b"), popup(.important)).isEmpty)
        #expect(queue.added(key("c"), popup(.failure)).isEmpty)
        #expect(queue.added(key("d"), popup(.emergency)).isEmpty)
        #expect(queue.added(key("e"), popup(.emergency)).isEmpty)
        var order: [String] = []
        var shown = "a"
        while !queue.isEmpty {
            order.append(shown)
            #expect(queue.pressed(key(shown)) == [.confirm(key(shown), opens: nil)])
            let actions = queue.resultStored(key(shown))
            #expect(actions.first == .dismiss(key(shown)))
            for case .show(let next, _, _) in actions { shown = next.update }
        }
        #expect(order == ["a", "d", "e", "c", "b"])
    }

    @Test func `a download that reports each byte is observed a hundred times`() {
        let steps = ProgressSteps()
        #expect((0...1_000_000).count { steps.isNew(Double($0) / 1e6) } <= 100)
        #expect(!steps.isNew(.nan) && !steps.isNew(-1))
    }

    @Test func `a repeated popup appears once`() {
        let queue = Queue()
        #expect(queue.added(key("a"), popup(.failure)).count == 1)
        #expect(queue.added(key("a"), popup(.failure)).isEmpty)
        _ = queue.resultStored(key("a"))
        #expect(queue.isEmpty)
    }

    @Test func `the button waits, downloads, and opens the file`() {
        let queue = Queue()
        let one = popup(.failure, "pump")
        #expect(
            queue.added(key("a"), one) == [
                .download(key("a"), .object("pump")), .show(key("a"), one, .downloading(0)),
            ])
        #expect(queue.pressed(key("a")).isEmpty, "there is nothing to open yet")
        #expect(queue.progressed(key("a"), to: 0.5) == [.show(key("a"), one, .downloading(0.5))])
        #expect(queue.progressed(key("a"), to: 0.501).isEmpty, "the step is not visible")
        #expect(queue.progressed(key("a"), to: 0.2).isEmpty, "it does not go back")
        #expect(queue.progressed(key("a"), to: .nan).isEmpty)
        #expect(queue.progressed(key("a"), to: 7) == [.show(key("a"), one, .downloading(1))])
        #expect(queue.downloaded(key("a")) == [.show(key("a"), one, .detail)])
        #expect(queue.pressed(key("a")) == [.confirm(key("a"), opens: .object("pump"))])
        #expect(queue.pressed(key("a")).isEmpty, "once")
        queue.resultNotStored(key("a"))
        #expect(queue.pressed(key("a")) == [.confirm(key("a"), opens: .object("pump"))], "it could not be stored")
    }

    @Test func `a popup that cannot be downloaded is closed, and is a failure`() {
        let queue = Queue()
        let one = popup(.emergency, "pump")
        _ = queue.added(key("a"), one)
        #expect(queue.downloaded(key("a"), errors: ["gone"]) == [.show(key("a"), one, .close)])
        #expect(queue.pressed(key("a")) == [.fail(key("a"), errors: ["gone"])])
    }

    @Test func `attachments are downloaded while their popups wait, two at a time`() {
        let queue = Queue()
        _ = queue.added(key("a"), popup(.failure))
        #expect(queue.added(key("b"), popup(.failure, "b")) == [.download(key("b"), .object("b"))])
        #expect(queue.added(key("c"), popup(.failure, "c")) == [.download(key("c"), .object("c"))])
        #expect(queue.added(key("d"), popup(.failure, "d")).isEmpty)
        #expect(queue.downloaded(key("b")) == [.download(key("d"), .object("d"))])
        // The popup whose turn it is was withdrawn.
        #expect(queue.added(key("e"), popup(.failure, "e")).isEmpty)
        #expect(queue.removed(key("c")) == [.download(key("e"), .object("e"))])
        #expect(queue.downloaded(key("c")).isEmpty)
        _ = queue.pressed(key("a"))
        #expect(queue.resultStored(key("a")).last == .show(key("b"), popup(.failure, "b"), .detail))
    }

    @Test func `a popup that waits for its download is shown as waiting`() {
        let queue = Queue()
        _ = queue.added(key("a"), popup(.important))
        for name in ["b", "c"] { _ = queue.added(key(name), popup(.important, name)) }
        let grave = popup(.emergency, "d")
        #expect(queue.added(key("d"), grave).isEmpty)
        #expect(queue.removed(key("a")) == [.dismiss(key("a")), .show(key("d"), grave, .waiting)])
        #expect(queue.pressed(key("d")).isEmpty)
        #expect(
            queue.downloaded(key("b"), errors: ["gone"]) == [
                .download(key("d"), .object("d")), .show(key("d"), grave, .downloading(0)),
            ])
    }

    @Test func `a withdrawn popup disappears, shown or not, and the next one appears`() {
        let queue = Queue()
        _ = queue.added(key("a"), popup(.failure))
        _ = queue.added(key("b"), popup(.failure))
        _ = queue.added(key("c"), popup(.failure))
        #expect(queue.removed(key("b")).isEmpty)
        #expect(queue.removed(key("a")) == [.dismiss(key("a")), .show(key("c"), popup(.failure), .ok)])
        #expect(queue.pressed(key("a")).isEmpty && queue.pressed(key("b")).isEmpty)
        #expect(queue.removedAll() == [.dismiss(key("c"))])
        #expect(queue.isEmpty && queue.removedAll().isEmpty)
    }
}
