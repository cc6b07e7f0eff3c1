import CarillonClient
import Foundation
import Synchronization
import TestSupport
import Testing

/// Services from end to end: two clients, and the real executable between them.
@Suite(.timeLimit(.minutes(5)))
struct ServiceTests {
    private static let echo = ServiceMethod("com.example.echo", "1.0", "echo")

    private func pair(_ scenario: ServiceScenario) async throws -> (consumer: PushClient, provider: PushClient) {
        let provider = try await scenario.client(ServiceScenario.files)
        let consumer = try await scenario.client()
        try await provider.serviceProvider.offer(
            name: "Files", version: "2.1", [Self.echo, ServiceScenario.transfer])
        try await scenario.found(ServiceScenario.files, by: consumer)
        return (consumer, provider)
    }

    private let files = ServiceApplication(app: ServiceScenario.files)

    @Test func `parameters of every type go there and come back`() async throws {
        let scenario = try await ServiceScenario()
        let (consumer, provider) = try await pair(scenario)
        await provider.serviceProvider.handle(Self.echo) { ServiceReply($0.parameters) }
        let values: [ServiceValue] = [
            nil, true, false, 0, 42, .integer(.max), .integer(.min), 1.5, .number(-0.0), .number(1e300), "", "é\u{0}\n\"",
            .bytes(Data()),
            .bytes(Data([0, 255])), [], [1, "two", 3.5, nil, true, .bytes(Data([1]))],
            ["to": ["ada@example.com"], "count": 3, "none": nil], [:],
            .string(String(repeating: "x", count: 20_000)), .string(String(repeating: "x", count: 1_000_000)),
        ]
        for value in values {
            let reply = try await consumer.serviceClient.call(Self.echo, of: files, value)
            #expect(reply == ServiceReply(value), "\(value)")
        }
        struct Mail: Codable, Equatable, Sendable {
            var to: [String]
            var size: Int
            var weight: Double
            var body: Data
        }
        let mail = Mail(to: ["ada"], size: 3, weight: 1, body: Data([1, 2]))
        let back = try await consumer.serviceClient.call(Self.echo, of: files, encoding: mail, as: Mail.self)
        #expect(back == mail)
        await #expect(throws: ServiceError.self) {
            try await consumer.serviceClient.call(Self.echo, of: files, [[1]])
        }
        // The provider's handling of it is checked, too.
        await provider.serviceProvider.handle(Self.echo) { _ in ServiceReply([["too", "deep"]]) }
        let deep = await fault { try await consumer.serviceClient.call(Self.echo, of: files) }
        #expect(deep?.code == .serviceParametersInvalid)
    }

    private func fault(_ work: () async throws -> some Any) async -> ServiceError? {
        do {
            _ = try await work()
            return nil
        } catch {
            return error as? ServiceError
        }
    }

    @Test(arguments: [1, 20]) func `files are sent there and back, and are reported in order`(_ count: Int) async throws {
        let scenario = try await ServiceScenario()
        let (consumer, provider) = try await pair(scenario)
        let sent = try (0..<count).map {
            try scenario.file("file \($0).bin", Data(repeating: UInt8($0), count: $0 * 10_000))
        }
        let paths = Mutex<[String]>([])
        await provider.serviceProvider.handle(ServiceScenario.transfer) { request in
            paths.withLock { $0 = request.attachments }
            return ServiceReply("thanks", attachments: request.attachments)
        }
        var events = consumer.serviceClient.events.makeAsyncIterator()
        var received = provider.serviceProvider.events.makeAsyncIterator()
        let reply = try await consumer.serviceClient.call(ServiceScenario.transfer, of: files, attachments: sent)
        #expect(reply.value == "thanks" && reply.attachments.count == count)
        let copies = paths.withLock { $0 }
        for number in 0..<count {
            let content = Data(repeating: UInt8(number), count: number * 10_000)
            for path in [copies[number], reply.attachments[number]] {
                #expect(path.hasSuffix("/file \(number).bin"))
                #expect(try Data(contentsOf: URL(filePath: path)) == content)
            }
        }
        #expect(copies[0].contains("/Inbox/com.example.app/") && reply.attachments[0].contains("/Inbox/com.example.files/"))

        var notified: [String] = []
        while let event = await events.next() {
            switch event {
            case .didStartSending(let to, let filename, _):
                #expect(to.app == ServiceScenario.files && sent.contains(filename))
                notified.append("start")
            case .didFinishSending(_, let attachments, _, _):
                #expect(attachments == sent)
                notified.append("finish")
            case .willStartReceiving(_, let number, _): notified.append("count \(number)")
            case .willStartReceivingFile(_, let path, let size, _):
                let number = reply.attachments.firstIndex(of: path)
                #expect(size == UInt64((number ?? -1) * 10_000))
                notified.append("file")
            case .didReceive: notified.append("receive")
            case .identityChanged: notified.append("identity")
            case .resultRemoved: notified.append("removed")
            case .missed: notified.append("missed")
            case .sending, .receiving: continue
            }
            if notified.last == "receive" { break }
        }
        let each = Array(repeating: "file", count: count)
        #expect(notified == Array(repeating: "start", count: count) + ["finish", "count \(count)"] + each + ["receive"])

        notified = []
        while let event = await received.next() {
            switch event {
            case .willStartReceiving(_, let number, _): notified.append("count \(number)")
            case .willStartReceivingFile: notified.append("file")
            case .didReceive: notified.append("receive")
            case .didStartSending: notified.append("start")
            case .didFinishSending: notified.append("finish")
            case .cancelled, .frontRequested, .identityChanged, .requestFailed, .handlerCrashed, .offerRefused:
                notified.append("other")
            case .missed: notified.append("missed")
            case .sending, .receiving: continue
            }
            if notified.last == "finish" { break }
        }
        #expect(
            notified == ["count \(count)"] + each + ["receive"] + Array(repeating: "start", count: count) + ["finish"])
        // The receiver's copies are its own: a directory a message, that it deletes.
        for path in sent { try FileManager.default.removeItem(atPath: path) }
        #expect(FileManager.default.fileExists(atPath: copies[0]))
        let left = try FileManager.default.contentsOfDirectory(
            atPath: URL(filePath: copies[0]).deletingLastPathComponent().path)
        #expect(left.count == count)
    }

    @Test(arguments: [0, 150]) func `the receipt of a request is reported once, whether its result comes soon or not`(
        _ milliseconds: Int
    ) async throws {
        let scenario = try await ServiceScenario()
        let (consumer, provider) = try await pair(scenario)
        await provider.serviceProvider.handle(Self.echo) {
            try await Task.sleep(for: .milliseconds(milliseconds))
            return ServiceReply($0.parameters)
        }
        let events = consumer.serviceClient.events
        _ = try await consumer.serviceClient.call(Self.echo, of: files, 5)
        var notified: [ServiceValue] = []
        for await event in events {
            if case .didFinishSending(_, _, let parameters, _) = event { notified.append(parameters) }
            if case .didReceive = event { break }
        }
        #expect(notified == [5])
    }

    @Test func `requests at once get their own replies`() async throws {
        let scenario = try await ServiceScenario()
        let (consumer, provider) = try await pair(scenario)
        await provider.serviceProvider.handle(Self.echo) { request in
            try await Task.sleep(for: .milliseconds(.random(in: 0...30)))
            return ServiceReply(request.parameters)
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<60 {
                group.addTask {
                    let reply = try await consumer.serviceClient.call(Self.echo, of: files, .integer(Int64(number)))
                    #expect(reply.value == .integer(Int64(number)))
                }
            }
            try await group.waitForAll()
        }
    }

    @Test func `each error is received unchanged`() async throws {
        let scenario = try await ServiceScenario()
        let (consumer, provider) = try await pair(scenario)
        let nobody = try await scenario.client(of: nil)
        let bob = try await scenario.client(of: "bob")
        let service = provider.serviceProvider
        await service.handle(Self.echo) { _ in throw ServiceError(number: 7, "no room", details: ["free": 3]) }
        let own = await fault { try await consumer.serviceClient.call(Self.echo, of: files) }
        #expect(own?.domain == "com.example.echo" && own?.number == 7 && own?.text == "no room")
        #expect(own?.details == ["free": 3])
        await service.handle(Self.echo) { _ in throw ServiceError(.providerLocked, "locked") }
        #expect(await fault { try await consumer.serviceClient.call(Self.echo, of: files) }?.code == .providerLocked)
        struct Odd: Error {}
        await service.handle(Self.echo) { _ in throw Odd() }
        #expect(await fault { try await consumer.serviceClient.call(Self.echo, of: files) }?.code == .serviceFailed)

        func code(_ method: ServiceMethod, _ to: ServiceApplication? = nil, by client: PushClient? = nil) async
            -> ServiceError.Code?
        {
            let client = (client ?? consumer).serviceClient
            let fault = await self.fault { try await client.call(method, of: to ?? files) }
            return fault?.code
        }
        #expect(await code(.init("com.example.none", "1.0", "echo")) == .serviceNotFound)
        #expect(await code(.init("com.example.echo", "2.0", "echo")) == .serviceVersionNotFound)
        #expect(await code(.init("com.example.echo", "1.0", "shout")) == .serviceMethodNotFound)
        #expect(await code(Self.echo, .init(app: "com.example.none")) == .applicationNotFound)
        #expect(await code(Self.echo, by: bob) == .applicationNotFound)
        #expect(await code(Self.echo, by: nobody) == .callForbidden, "it may not call any device")
        #expect(await code(.init("com.Example.echo", "1.0", "echo")) == .serviceIDInvalid)
        #expect(await code(.init("com.example.echo", "1.x", "echo")) == .serviceIDInvalid)
        await service.setMethod(Self.echo, isDisabled: true)
        #expect(await code(Self.echo) == .methodDisabled)
        await service.setVersion("1.0", of: "com.example.echo", isDisabled: true)
        #expect(await code(Self.echo) == .versionDisabled)
        await service.setService("com.example.echo", isDisabled: true)
        #expect(await code(Self.echo) == .serviceDisabled)
        await service.setService("com.example.echo", isDisabled: false)
        await service.setVersion("1.0", of: "com.example.echo", isDisabled: false)
        await service.setMethod(Self.echo, isDisabled: false)
        #expect(await code(Self.echo) == .serviceFailed)

        func attach(_ paths: [String]) async -> ServiceError.Code? {
            let fault = await self.fault {
                try await consumer.serviceClient.call(Self.echo, of: files, attachments: paths)
            }
            return fault?.code
        }
        #expect(await attach(["/nowhere/file"]) == .attachmentMissing)
        #expect(await attach([scenario.server.directory]) == .attachmentMissing)
        #expect(await attach(["../secret"]) == .pathInvalid)
        let one = try scenario.file("A.txt", Data([1]))
        let two = try scenario.file("a.TXT", Data([2]))
        #expect(await attach([one, two]) == .serviceFailed, "equal names get numbers")
        #expect(await attach(["a\u{202E}b"]) == .pathInvalid)
        #expect(await attach(Array(repeating: one, count: 33)) == .requestTooLarge)
        let tooLong = await fault {
            try await consumer.serviceClient.call(Self.echo, of: files, .string(String(repeating: "x", count: 1_100_000)))
        }
        #expect(tooLong?.code == .requestTooLarge)
    }

    @Test func `a deadline ends a request, and cancels its handler`() async throws {
        let scenario = try await ServiceScenario()
        let (consumer, provider) = try await pair(scenario)
        let wasCancelled = Mutex(false)
        await provider.serviceProvider.handle(Self.echo) { _ in
            do {
                try await Task.sleep(for: .seconds(60))
            } catch {
                wasCancelled.withLock { $0 = true }
                throw error
            }
            return ServiceReply()
        }
        // Long enough for the handler to begin.
        let late = await fault { try await consumer.serviceClient.call(Self.echo, of: files, deadline: .seconds(10)) }
        #expect(late?.code == .deadlineExceeded)
        try await eventually { wasCancelled.withLock { $0 } }

        // Files that were not fetched are removed with it.
        await provider.stop()
        let sent = try scenario.file("a.txt", Data([1]))
        let unread = await fault {
            try await consumer.serviceClient.call(Self.echo, of: files, attachments: [sent], deadline: .seconds(1))
        }
        #expect(unread?.code == .deadlineExceeded)
        try await scenario.hasFiles(0)
    }

    @Test func `a consumer can withdraw a request, or have its provider notified`() async throws {
        let scenario = try await ServiceScenario()
        let (consumer, provider) = try await pair(scenario)
        let begun = Mutex(0)
        let cancelled = Mutex(0)
        await provider.serviceProvider.handle(Self.echo) { _ in
            begun.withLock { $0 += 1 }
            do {
                try await Task.sleep(for: .seconds(60))
            } catch {
                cancelled.withLock { $0 += 1 }
                throw error
            }
            return ServiceReply()
        }
        let call = Task { try await consumer.serviceClient.call(Self.echo, of: files) }
        try await eventually { begun.withLock { $0 } == 1 }
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        try await eventually { cancelled.withLock { $0 } == 1 }

        // The provider is away: requests that it does not have are removed, with their files.
        await provider.stop()
        let sent = try scenario.file("a.txt", Data(repeating: 1, count: 1000))
        let id = try await consumer.serviceClient.send(Self.echo, to: files, attachments: [sent])
        try await scenario.hasFiles(1)
        #expect(try await consumer.serviceClient.cancel(id))
        try await scenario.hasFiles(0)
        await #expect(throws: ServiceError.self) { try await consumer.serviceClient.cancel(id) }
        let ids = [
            try await consumer.serviceClient.send(Self.echo, to: files),
            try await consumer.serviceClient.send(Self.echo, to: files),
        ]
        let device = try #require(try await consumer.serviceClient.providers().first?.application)
        #expect(try await consumer.serviceClient.cancelAll(to: device) == ids.count)
        try provider.start()
        try await Task.sleep(for: .milliseconds(300))
        #expect(begun.withLock { $0 } == 1)
    }

    @Test func `a request waits for a provider that is away, and for its handler, and is handled once`() async throws {
        let scenario = try await ServiceScenario()
        let (consumer, provider) = try await pair(scenario)
        await provider.stop()
        let call = Task { try await consumer.serviceClient.call(Self.echo, of: files, "later") }
        try await Task.sleep(for: .milliseconds(300))
        try provider.start()
        try await Task.sleep(for: .milliseconds(300))
        let count = Mutex(0)
        await provider.serviceProvider.handle(Self.echo) { request in
            count.withLock { $0 += 1 }
            return ServiceReply(request.parameters)
        }
        #expect(try await call.value.value == "later")
        #expect(count.withLock { $0 } == 1)
    }

    @Test func `after a restart of the consumer a result is delivered to the next run, until it is confirmed`() async throws
    {
        let scenario = try await ServiceScenario()
        let provider = try await scenario.client(ServiceScenario.files)
        try await provider.serviceProvider.offer(name: "Files", version: "1", [Self.echo])
        let directory = scenario.server.directory + "/consumer"
        var consumer: PushClient? = try await scenario.client(in: directory)
        try await scenario.found(ServiceScenario.files, by: try #require(consumer))
        let sent = try scenario.file("a.txt", Data([1]))
        let id = try await consumer?.serviceClient.send(Self.echo, to: files, "?", attachments: [sent])
        await consumer?.stop()
        consumer = nil
        await provider.serviceProvider.handle(Self.echo) { ServiceReply("!", attachments: $0.attachments) }
        for run in 0..<3 {
            let again = try await scenario.client(of: nil, in: directory)
            var replies = again.serviceClient.replies.makeAsyncIterator()
            if run < 2 {
                let reply = try #require(await replies.next())
                let value = try reply.result.get()
                #expect(reply.id == id && reply.method == Self.echo && value.value == "!")
                #expect(try Data(contentsOf: URL(filePath: value.attachments[0])) == Data([1]))
                if run == 1 { await reply.confirm() }
            } else {
                let task = Task { await replies.next() }
                try await Task.sleep(for: .milliseconds(300))
                task.cancel()
                #expect(await task.value == nil)
            }
            await again.stop()
        }
    }

    @Test func `the data of a device is removed with its user`() async throws {
        let scenario = try await ServiceScenario()
        let (consumer, provider) = try await pair(scenario)
        let wasCancelled = Mutex(false)
        await provider.serviceProvider.handle(Self.echo) { _ in
            do {
                try await Task.sleep(for: .seconds(60))
            } catch {
                wasCancelled.withLock { $0 = true }
                throw error
            }
            return ServiceReply()
        }
        await provider.serviceProvider.handle(ServiceScenario.transfer) { ServiceReply(attachments: $0.attachments) }
        let sent = try scenario.file("a.txt", Data([1]))
        let kept = try await consumer.serviceClient.call(ServiceScenario.transfer, of: files, attachments: [sent])
        let before = try await provider.serviceProvider.fingerprint
        let events = provider.serviceProvider.events
        let call = Task { try await consumer.serviceClient.call(Self.echo, of: files) }
        for await event in events {
            if case .didReceive = event { break }
        }
        try await provider.device.setUser(nil)
        let ended = await fault { try await call.value }
        #expect(ended?.code == .userMismatch)
        try await eventually { wasCancelled.withLock { $0 } }
        #expect(try await provider.serviceProvider.fingerprint != before)
        #expect(try await consumer.serviceClient.providers().isEmpty)

        // And the consumer's: the calls that it waits for, and the received results.
        try await scenario.signIn("ada", on: provider, of: ServiceScenario.files)
        try await scenario.found(ServiceScenario.files, by: consumer)
        #expect(try await provider.serviceProvider.fingerprint == before, "the same user is the same to others")
        let answered = try await consumer.serviceClient.call(ServiceScenario.transfer, of: files, attachments: [sent])
        #expect(answered.attachments.count == 1, "it answers with the keys that it has by now")
        let more = provider.serviceProvider.events
        let second = Task { try await consumer.serviceClient.call(Self.echo, of: files) }
        for await event in more {
            if case .didReceive = event { break }
        }
        try await consumer.device.setUser(nil)
        #expect(await fault { try await second.value }?.code == .userMismatch)
        #expect(!FileManager.default.fileExists(atPath: kept.attachments[0]))
    }

    @Test func `a handler that a stop interrupted is called again, and one that may run once is not`() async throws {
        let scenario = try await ServiceScenario()
        let (consumer, provider) = try await pair(scenario)
        for atMostOnce in [false, true] {
            let count = Mutex(0)
            await provider.serviceProvider.handle(Self.echo, atMostOnce: atMostOnce) { request in
                let isFirst = count.withLock { count in
                    count += 1
                    return count == 1
                }
                if isFirst { try await Task.sleep(for: .seconds(60)) }
                return ServiceReply(request.parameters)
            }
            let call = Task { try await consumer.serviceClient.call(Self.echo, of: files, "x") }
            try await eventually { count.withLock { $0 } == 1 }
            await provider.stop()
            try provider.start()
            if atMostOnce {
                #expect(await fault { try await call.value }?.code == .serviceFailed)
                #expect(count.withLock { $0 } == 1)
            } else {
                #expect(try await call.value.value == "x")
                #expect(count.withLock { $0 } == 2)
            }
        }
    }

    @Test func `a result that its definition does not have is refused by each side that knows it`() async throws {
        let scenario = try await ServiceScenario()
        let (consumer, provider) = try await pair(scenario)
        let document =
            #"{"service-id":"com.example.echo","version":"1.0","title":"E","methods":{"echo":{"reply":{"type":"integer"}}}}"#
        let definition = try ServiceDefinition(Data(document.utf8))
        await provider.serviceProvider.handle(Self.echo) { _ in ServiceReply("no number") }
        #expect(try await consumer.serviceClient.call(Self.echo, of: files).value == "no number")
        await consumer.serviceClient.use(definition)
        #expect(
            await fault { try await consumer.serviceClient.call(Self.echo, of: files) }?.code == .serviceParametersInvalid)
        let stranger = try await scenario.client()
        try await provider.serviceProvider.offer(name: "Files", version: "1", [definition])
        #expect(
            await fault { try await stranger.serviceClient.call(Self.echo, of: files) }?.code == .serviceParametersInvalid)
    }

    @Test func `a request that was withdrawn before its handler existed is not handled`() async throws {
        let scenario = try await ServiceScenario()
        let (consumer, provider) = try await pair(scenario)
        var events = consumer.serviceClient.events.makeAsyncIterator()
        let cancelled = provider.serviceProvider.events
        var wasTakenBack = true
        while wasTakenBack {
            let id = try await consumer.serviceClient.send(Self.echo, to: files)
            // It is with the provider once it cannot be taken back any more.
            try await Task.sleep(for: .milliseconds(300))
            wasTakenBack = try await consumer.serviceClient.cancel(id)
        }
        for await event in cancelled {
            if case .cancelled = event { break }
        }
        let count = Mutex(0)
        await provider.serviceProvider.handle(Self.echo) { _ in
            count.withLock { $0 += 1 }
            return ServiceReply()
        }
        while let event = await events.next() {
            guard case .didReceive(_, let result, _) = event else { continue }
            #expect(throws: ServiceError.self) { try result.get() }
            break
        }
        #expect(count.withLock { $0 } == 0)
    }
}
