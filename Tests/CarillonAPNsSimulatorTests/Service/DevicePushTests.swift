import Testing

@testable import CarillonAPNsSimulator

struct DevicePushTests {
    struct Mistake: Sendable, CustomTestStringConvertible {
        var reason: Reason
        var testDescription: String
        var make: @Sendable (inout Submission) -> Void

        init(_ reason: Reason, _ description: String, _ make: @escaping @Sendable (inout Submission) -> Void) {
            self.reason = reason
            testDescription = "\(reason.rawValue): \(description)"
            self.make = make
        }
    }

    static let mistakes: [Mistake] = [
        Mistake(.badPath, "another path") { $0.path = "/3/devices/00" },
        Mistake(.badPath, "a management path") { $0.path = "/1/apps/com.example.app/channels" },
        Mistake(.methodNotAllowed, "GET") { $0.method = "GET" },
        Mistake(.missingDeviceToken, "a path that ends early") { $0.path = "/3/device/" },
        Mistake(.missingDeviceToken, "a path that ends earlier") { $0.path = "/3/device" },
        Mistake(.badDeviceToken, "not hexadecimal") { $0.path = "/3/device/zz" },
        Mistake(.badDeviceToken, "half a byte") { $0.path = "/3/device/abc" },
        Mistake(.badDeviceToken, "an unknown token") { $0.path = "/3/device/abcd" },
        Mistake(.badDeviceToken, "the other environment") { $0.environment = .production },
        Mistake(.duplicateHeaders, "a header twice") { $0.fields.duplicate = "apns-topic" },
        Mistake(.missingProviderToken, "no token") { $0.fields.authorization = nil },
        Mistake(.invalidProviderToken, "not a token") { $0.fields.authorization = "bearer abc" },
        Mistake(.invalidProviderToken, "another scheme") { $0.fields.authorization = "basic abc" },
        Mistake(.badMessageID, "not a UUID") { $0.fields.id = "1" },
        Mistake(.invalidPushType, "an unknown push type") { $0.fields.pushType = "shout" },
        Mistake(.badExpirationDate, "not a number") { $0.fields.expiration = "tomorrow" },
        Mistake(.badExpirationDate, "a negative number") { $0.fields.expiration = "-1" },
        Mistake(.badPriority, "not a number") { $0.fields.priority = "high" },
        Mistake(.badPriority, "a number between") { $0.fields.priority = "7" },
        Mistake(.badPriority, "a background push that is urgent") {
            $0.fields.pushType = "background"
            $0.fields.priority = "10"
        },
        Mistake(.badCollapseID, "65 bytes") { $0.fields.collapseID = String(repeating: "c", count: 65) },
        Mistake(.missingTopic, "no topic") { $0.fields.topic = nil },
        Mistake(.badTopic, "a space") { $0.fields.topic = "com example" },
        Mistake(.badTopic, "no suffix for VoIP") { $0.fields.pushType = "voip" },
        Mistake(.badTopic, "a suffix for an alert") { $0.fields.topic = "com.example.app.voip" },
        Mistake(.payloadEmpty, "no body") { $0.setBody("") },
        Mistake(.payloadTooLarge, "4097 bytes") { $0.payloadBytes = 4097 },
        Mistake(.deviceTokenNotForTopic, "another app") { $0.fields.topic = "com.example.other" },
    ]

    @Test(arguments: mistakes) func `an honest mistake has its reason`(mistake: Mistake) throws {
        var asker = try Asker()
        #expect(try asker.ask().status == 200)
        let answer = try asker.ask(mistake.make)
        #expect(answer.reason == mistake.reason)
        #expect(answer.status == mistake.reason.status)
        #expect(answer.body == "{\"reason\":\"\(mistake.reason.rawValue)\"}")
    }

    @Test(arguments: PushType.allCases) func `a push type accepts only its own topic and payload`(type: PushType) throws {
        var asker = try Asker()
        asker.service.rules.unknownDevices = .accept
        let path = "/3/device/1234"
        let topic = "com.example.app" + type.topicSuffix
        let limit = type == .voip ? 5120 : 4096
        let good = try asker.ask {
            $0.path = path
            $0.fields.pushType = type.rawValue
            $0.fields.topic = topic
            $0.payloadBytes = limit
        }
        #expect(good.status == 200)
        let large = try asker.ask {
            $0.path = path
            $0.fields.pushType = type.rawValue
            $0.fields.topic = topic
            $0.payloadBytes = limit + 1
        }
        #expect(large.reason == .payloadTooLarge)
        let wrong = try asker.ask {
            $0.path = path
            $0.fields.pushType = type.rawValue
            $0.fields.topic = topic + (type == .voip ? ".complication" : ".voip")
        }
        #expect(wrong.reason == .badTopic)
    }

    @Test(arguments: [
        ("liveactivity", "1", false), ("liveactivity", "5", true), ("background", "1", true), ("alert", "1", true),
    ])
    func `each push type has its priorities`(type: String, priority: String, isGood: Bool) throws {
        var asker = try Asker()
        asker.service.rules.unknownDevices = .accept
        let answer = try asker.ask {
            $0.path = "/3/device/1234"
            $0.fields.pushType = type
            $0.fields.topic = "com.example.app" + (PushType(rawValue: type)?.topicSuffix ?? "")
            $0.fields.priority = priority
        }
        #expect(answer.reason == (isGood ? nil : .badPriority))
    }

    @Test func `an id is repeated as it was sent, and made up when there was none`() throws {
        var asker = try Asker()
        let id = "123e4567-e89b-12d3-a456-42665544000a"
        #expect(try asker.ask { $0.fields.id = id }.id == id)
        let made = try #require(try asker.ask().id)
        #expect(Identifiers.isUUID(made))
        #expect(try asker.ask().id != made)
    }

    @Test func `a refusal that was decided elsewhere has the identifiers of the service's own`() throws {
        var asker = try Asker()
        let id = "11111111-2222-3333-4444-55555555555A"
        let given = asker.service.identified(SimulatorAnswer(.shutdown), try asker.push { $0.fields.id = id })
        #expect(given.id == id)
        #expect(given.uniqueID.map(Identifiers.isUUID) == true)
        #expect(given.requestID == nil)
        let made = asker.service.identified(
            SimulatorAnswer(.shutdown),
            try asker.push {
                $0.fields.id = "no UUID"
                $0.environment = .production
            })
        #expect(made.id.map(Identifiers.isUUID) == true)
        #expect(made.uniqueID == nil)
        let broadcast = asker.service.identified(
            SimulatorAnswer(.shutdown), try asker.push { $0.path = "/4/broadcasts/apps/com.example.app" })
        #expect(broadcast.id == nil)
        #expect(broadcast.requestID.map(Identifiers.isUUID) == true)
    }

    @Test func `the token of a check is never entered into the book`() throws {
        var asker = try Asker()
        asker.service.rules.unknownDevices = .register
        let before = asker.service.devices.devices
        for token in [Identifiers.nobody, Identifiers.nobody.uppercased()] {
            #expect(try asker.ask { $0.path = "/3/device/\(token)" }.reason == .badDeviceToken)
        }
        #expect(asker.service.devices.devices == before)
        #expect(try asker.ask { $0.path = "/3/device/\(Identifiers.nobody)00" }.status == 200)
        #expect(asker.service.devices.devices.count == before.count + 1)
    }

    @Test func `only the sandbox returns a unique id`() throws {
        var asker = try Asker()
        asker.service.devices.put(
            Device(token: Asker.token, topic: "com.example.app", environment: .production), at: asker.now)
        #expect(try asker.ask().uniqueID.map(Identifiers.isUUID) == true)
        #expect(try asker.ask { $0.environment = .production }.uniqueID == nil)
    }

    @Test func `a dead token is reported with its time`() throws {
        var asker = try Asker()
        asker.service.devices.put(
            Device(token: "aa", topic: "com.example.app", state: .unregistered(since: 1_700_000_000_123)), at: asker.now)
        asker.service.devices.put(
            Device(token: "bb", topic: "com.example.app", state: .expired(since: 42)), at: asker.now)
        let gone = try asker.ask { $0.path = "/3/device/AA" }
        #expect(gone.status == 410)
        #expect(gone.body == #"{"reason":"Unregistered","timestamp":1700000000123}"#)
        #expect(try asker.ask { $0.path = "/3/device/bb" }.body == #"{"reason":"ExpiredToken","timestamp":42}"#)
    }

    @Test func `too many requests for one device are refused for the rest of the minute`() throws {
        var asker = try Asker()
        asker.service.rules.requestsPerDeviceAndMinute = 2
        #expect(try asker.ask().status == 200)
        #expect(try asker.ask().status == 200)
        #expect(try asker.ask().reason == .tooManyRequests)
        asker.now = asker.now + .minutes(1)
        #expect(try asker.ask().status == 200)
    }

    @Test func `a service that stops reports it`() throws {
        var asker = try Asker()
        asker.service.isShuttingDown = true
        #expect(try asker.ask().body == #"{"reason":"Shutdown"}"#)
    }

    @Test(arguments: APNsSimulator.UnknownDevices.allCases)
    func `unknown device tokens are treated as was chosen`(choice: APNsSimulator.UnknownDevices) throws {
        var asker = try Asker()
        asker.service.rules.unknownDevices = choice
        let answer = try asker.ask { $0.path = "/3/device/cafe" }
        #expect(answer.reason == (choice == .refuse ? .badDeviceToken : nil))
        #expect(asker.service.devices.devices.contains { $0.token == "cafe" } == (choice == .register))
    }
}
