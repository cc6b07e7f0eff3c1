import NIOCore

/// Many subscribers, of which a limited number connect at the same time.
///
/// `@unchecked Sendable`: it is used only on ``LoadLoop``.
final class SubscriberHerd: SubscriberEvents, @unchecked Sendable {
    private let address: SocketAddress
    private let subscription: @Sendable (Int) -> Subscription
    private var subscribers: [Subscriber] = []
    private var wanted = 0
    private var begun = 0
    private var ready = 0
    private var closed = 0
    private var received = 0
    private var expected: Int?
    private var isClosing = false
    private var waiter: EventLoopPromise<Void>?
    private var closeWaiter: EventLoopPromise<Void>?
    private var fault: NotMeasured?

    /// Called for each message as soon as its frame was read.
    var onMessage: (@Sendable (ByteBuffer, Int) -> Void)?

    init(_ address: SocketAddress, subscription: @escaping @Sendable (Int) -> Subscription) {
        self.address = address
        self.subscription = subscription
    }

    /// Connects until the given number of subscribers is ready.
    func connect(_ count: Int, inFlight: Int) -> EventLoopFuture<Void> {
        wanted = count
        subscribers.reserveCapacity(count)
        let future = wait(what: "subscribers were ready", of: count) { self.ready }
        if count == 0 { return complete(future) }
        for _ in 0..<min(inFlight, count) { connectNext() }
        return future
    }

    /// Waits until all subscribers together have received the given number of messages, counted from the start.
    func receive(_ count: Int) -> EventLoopFuture<Void> {
        expected = count
        let future = wait(what: "messages arrived", of: count) { self.received }
        return received >= count ? complete(future) : future
    }

    /// The number of messages of each subscriber.
    var counts: [Int] {
        subscribers.sorted { $0.index < $1.index }.map(\.messageCount)
    }

    func close() -> EventLoopFuture<Void> {
        isClosing = true
        let promise = LoadLoop.loop.makePromise(of: Void.self)
        closeWaiter = promise
        for subscriber in subscribers { subscriber.close() }
        if closed >= begun { promise.succeed(()) }
        return promise.futureResult
    }

    private func connectNext() {
        guard begun < wanted, fault == nil else { return }
        let subscriber = Subscriber(index: begun, subscription: subscription(begun), events: self)
        begun += 1
        subscribers.append(subscriber)
        LoadLoop.connect(address, subscriber).whenFailure { error in
            self.fail("a connection could not be made: \(error)")
        }
    }

    func became(ready subscriber: Subscriber) {
        ready += 1
        if ready == wanted { complete() } else { connectNext() }
    }

    func received(_ message: ByteBuffer, by subscriber: Subscriber) {
        received += 1
        onMessage?(message, subscriber.index)
        if received == expected { complete() }
    }

    func closed(_ subscriber: Subscriber, _ reason: String) {
        closed += 1
        if !isClosing { fail(reason) }
        if closed == begun { closeWaiter?.succeed(()) }
    }

    private func wait(what: String, of count: Int, progress: @escaping @Sendable () -> Int) -> EventLoopFuture<Void> {
        let promise = LoadLoop.loop.makePromise(of: Void.self)
        if let fault {
            promise.fail(fault)
        } else {
            waiter = promise
            Stall.watch(promise.futureResult, progress: progress) {
                self.fail("\(progress()) of \(count) \(what), then no more")
            }
        }
        return promise.futureResult
    }

    private func complete(_ future: EventLoopFuture<Void>) -> EventLoopFuture<Void> {
        complete()
        return future
    }

    /// Removes the waiter first, because a resumed caller can wait again at once.
    private func complete() {
        let waiter = waiter
        self.waiter = nil
        waiter?.succeed(())
    }

    private func fail(_ reason: String) {
        let fault = fault ?? NotMeasured(reason)
        self.fault = fault
        let waiter = waiter
        self.waiter = nil
        waiter?.fail(fault)
    }
}
