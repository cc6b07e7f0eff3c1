import CarillonWire
import TestSupport
import Testing

@testable import CarillonClient

/// Each public stream of the library, filled beyond its limit while its reader does not read.
///
/// The results of ``ServiceClient/replies`` wait in the store, and the results of a push to many devices are read as they are
/// sent.
@Suite(.timeLimit(.minutes(5)))
struct PublicStreamTests {
    struct Stream: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// The entries that the reader receives when it reads again.
        let expected: [String]
        /// Begins to read, fills the stream, and returns the entries that the reader receives.
        let hear: @Sendable (PushClient) async throws -> [String]

        init(_ name: String, expected: [String], hear: @escaping @Sendable (PushClient) async throws -> [String]) {
            testDescription = name
            self.expected = expected
            self.hear = hear
        }
    }

    private static let streams: [Stream] = [
        device, subscription, client, provider, channel, availability, providers, clientProgress, providerProgress, transfer,
        firings,
    ]

    @Test(arguments: streams)
    func `a reader that paused receives the newest events that fit, in order, and the number of missed ones`(
        stream: Stream
    ) async throws {
        let directory = TemporaryDirectory()
        let client = try PushClient(
            configuration: .init(
                server: "http://127.0.0.1:9", app: "com.example.app", clientKey: "key", storageDirectory: directory.path))
        let heard = try await stream.hear(client)
        #expect(heard == stream.expected)
    }

    private static func texts(_ numbers: Range<Int>, _ before: String = "", _ after: String = "") -> [String] {
        numbers.map { before + String($0) + after }
    }

    // MARK: Events

    private static let device = Stream(
        "PushDevice.events", expected: ["missed 901"] + texts(901..<1000) + ["resumed"]
    ) { client in
        var events = client.device.events.makeAsyncIterator()
        for number in 0..<1000 { client.device.listeners.notify([.suspended(.init(rawValue: "\(number)"))]) }
        client.device.listeners.notify([.resumed])
        var heard: [String] = []
        while heard.last != "resumed", let event = await events.next() {
            switch event {
            case .missed(let count): heard.append("missed \(count)")
            case .suspended(let reason): heard.append(reason.rawValue)
            case .resumed: heard.append("resumed")
            default: heard.append("other")
            }
        }
        return heard
    }

    private static let subscription = Stream(
        "NotificationSubscription.events", expected: ["missed 901"] + texts(901..<1000) + ["triggered"]
    ) { _ in
        let subscription = NotificationSubscription(
            items: ["stock.ACME"], fields: ["price"], format: .init(title: "ACME", body: "moved"))
        var events = subscription.events.makeAsyncIterator()
        for number in 0..<1000 {
            subscription.listeners.notify([.subscriptionFailed(PushError(.registrationRefused, "\(number)"))])
        }
        subscription.listeners.notify([.triggered])
        var heard: [String] = []
        while heard.last != "triggered", let event = await events.next() {
            switch event {
            case .missed(let count): heard.append("missed \(count)")
            case .subscriptionFailed(let error): heard.append(error.message)
            case .triggered: heard.append("triggered")
            default: heard.append("other")
            }
        }
        return heard
    }

    private static let client = Stream(
        "ServiceClient.events",
        expected: ["missed 440"] + texts(200..<300, "sending ", ": 2") + texts(40..<140, "result ")
    ) { client in
        let listeners = await client.serviceClient.engine.clientListeners
        let address = ServiceApplication(app: "com.example.files")
        var events = client.serviceClient.events.makeAsyncIterator()
        func results(_ numbers: Range<Int>) {
            for number in numbers { listeners.notify([.didReceive(from: address, .success(.init()), id: "\(number)")]) }
        }
        results(0..<40)
        for number in 0..<200 { listeners.notify([.didStartSending(to: address, filename: "f", id: "\(number)")]) }
        for number in 0..<300 {
            for bytes in 0..<3 as Range<Int64> {
                listeners.notifyProgress(.sending(id: "\(number)", bytesSent: bytes, of: 3))
            }
        }
        results(40..<140)
        var heard: [String] = []
        while heard.last != "result 139", let event = await events.next() { heard.append(event.brief) }
        return heard
    }

    private static let provider = Stream(
        "ServiceProvider.events",
        expected: ["missed 100"] + texts(50..<150, "receiving ") + texts(50..<150, "cancelled ")
    ) { client in
        let listeners = await client.serviceProvider.engine.providerListeners
        var events = client.serviceProvider.events.makeAsyncIterator()
        for number in 0..<150 { listeners.notifyProgress(.receiving(id: "\(number)", bytesReceived: 1, of: 3)) }
        for number in 0..<150 { listeners.notify([.cancelled(id: "\(number)")]) }
        var heard: [String] = []
        while heard.last != "cancelled 149", let event = await events.next() {
            switch event {
            case .missed(let count): heard.append("missed \(count)")
            case .receiving(let id, _, _): heard.append("receiving \(id)")
            case .cancelled(let id): heard.append("cancelled \(id)")
            default: heard.append("other")
            }
        }
        return heard
    }

    private static let channel = Stream(
        "PushChannel.events", expected: ["missed 37"] + texts(37..<100, "error ") + ["closed"]
    ) { client in
        let channel = try client.channel("com.example.orders")
        var events = channel.events.makeAsyncIterator()
        channel.readQueue.append(.notifyRecovered)
        guard case .recovered? = try await events.next() else { return ["not recovered"] }
        for number in 0..<100 { channel.readQueue.append(.notifyError(code: number)) }
        channel.readQueue.append(.notifyClosed(token: "t"))
        var heard: [String] = []
        while heard.last != "closed", let event = try await events.next() {
            switch event {
            case .other(let other): heard.append("\(other) \(other.missedCount ?? 0)")
            case .error(let code): heard.append("error \(code)")
            case .closed: heard.append("closed")
            default: heard.append("something else")
            }
        }
        return heard
    }

    // MARK: States, of which the newest counts

    private static let availability = Stream(
        "PushClient.availabilityUpdates", expected: ["false true", "true true"]
    ) { client in
        var updates = client.availabilityUpdates.makeAsyncIterator()
        let board = client.runner.availability
        for number in 0..<1000 { board.post(Availability(network: true, service: number.isMultiple(of: 2))) }
        board.post(Availability(network: false, service: true))
        let newest = await updates.next()
        board.post(Availability(network: true, service: true))
        let next = await updates.next()
        return [newest, next].compactMap { $0.map { "\($0.network) \($0.service)" } }
    }

    private static let providers = Stream("ServiceClient.providerChanges", expected: ["999", "1000"]) { client in
        let watchers = client.serviceClient.engine.providerWatchers
        func notify(_ number: Int) {
            watchers.notify([
                FoundProvider(
                    application: ServiceApplication(app: "com.example.files"), name: "\(number)", version: "1", isLive: true,
                    services: [], type: .application, fingerprint: "")
            ])
        }
        var lists = client.serviceClient.providerChanges.makeAsyncIterator()
        for number in 0..<1000 { notify(number) }
        let newest = await lists.next()
        notify(1000)
        let next = await lists.next()
        return [newest, next].compactMap { $0?.first?.name }
    }

    private static let clientProgress = Stream("ServiceClient.progress(of:)", expected: ["999"]) { client in
        let watchers = await client.serviceClient.engine.clientProgress
        let id = client.serviceClient.makeRequestID()
        return await lastProgress(client.serviceClient.progress(of: id), of: id, watchers)
    }

    private static let providerProgress = Stream("ServiceProvider.progress(of:)", expected: ["999"]) { client in
        let watchers = await client.serviceProvider.engine.providerProgress
        await client.serviceProvider.engine.noteRequest("r")
        return await lastProgress(client.serviceProvider.progress(of: "r"), of: "r", watchers)
    }

    private static func lastProgress(
        _ stream: AsyncStream<ServiceProgress>, of id: String, _ watchers: ProgressWatchers
    ) async -> [String] {
        for bytes in 0..<1000 as Range<Int64> {
            watchers.notify(ServiceProgress(.sending, completedBytes: bytes, totalBytes: 1000), of: id)
        }
        watchers.ended(id)
        var heard: [String] = []
        for await progress in stream { heard.append("\(progress.completedBytes)") }
        return heard
    }

    private static let transfer = Stream("AttachmentTransfer.progress", expected: ["1000"]) { _ in
        let transfer = AttachmentTransfer<String>(
            id: "t", length: 1000,
            work: { moved in
                for bytes in 0...1000 as ClosedRange<Int64> { moved(bytes) }
                return "path"
            }, onCancel: {}, onConfirm: {})
        let progress = transfer.progress
        _ = try await transfer.value
        var heard: [String] = []
        for await bytes in progress { heard.append("\(bytes)") }
        return heard
    }

    // MARK: Firings

    private static let firings = Stream("PushDevice.firings", expected: texts(0..<1000) + ["1200"]) { _ in
        let queue = FiringQueue(.init())
        func firing(_ number: Int) throws -> SubscriptionFiring {
            let body =
                #"{"subscription":"00000000000000000000000000000001","key":"k","item":"i","at":5,"notification":{"title":"t"}}"#
            guard let firing = SubscriptionFiring(FiredFrame(version: "\(number)", body: Array(body.utf8))) else {
                throw CancellationError()
            }
            return firing
        }
        for number in 0..<1500 { queue.add(try firing(number)) }
        var firings = SubscriptionFirings(queue: queue).makeAsyncIterator()
        var heard: [String] = []
        while heard.count < 1000, let firing = await firings.next() { heard.append(firing.id) }
        // Entries that were not read are delivered again.
        queue.add(try firing(1200))
        if let firing = await firings.next() { heard.append(firing.id) }
        return heard
    }
}

extension ServiceEngine {
    /// Notes a request of another device.
    fileprivate func noteRequest(_ id: String) {
        incoming[id] = IncomingRequests.Work(number: 1, isUnwanted: false, exceedsLimit: false)
    }
}
