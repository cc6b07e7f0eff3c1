import NIOCore
import Testing

@testable import CarillonAPNsSimulator

struct BroadcastTests {
    private static let bundle = "com.example.app"

    private static func manage(_ request: inout Submission, _ method: String, _ path: String = "channels") {
        request.services = .management
        request.method = method
        request.path = "/1/apps/\(bundle)/\(path)"
        request.fields.topic = nil
        request.fields.pushType = nil
        if method != "POST" { request.setBody("") }
    }

    private static func create(_ asker: inout Asker, policy: Int = 1) throws -> SimulatorAnswer {
        try asker.ask {
            manage(&$0, "POST")
            $0.setBody(#"{"message-storage-policy":\#(policy),"push-type":"LiveActivity"}"#)
        }
    }

    private static func broadcast(_ request: inout Submission, _ channel: String?) {
        request.path = "/4/broadcasts/apps/\(bundle)"
        request.fields.topic = nil
        request.fields.pushType = "liveactivity"
        request.fields.expiration = "0"
        request.fields.channelID = channel
        request.setBody(#"{"aps":{"timestamp":1,"event":"update","content-state":{}}}"#)
    }

    @Test func `a channel is created, read, listed, sent to and deleted`() throws {
        var asker = try Asker()
        let made = try Self.create(&asker)
        #expect(made.status == 201)
        #expect(made.requestID.map(Identifiers.isUUID) == true)
        #expect(made.id == nil)
        let id = try #require(made.channelID)
        let read = try asker.ask {
            Self.manage(&$0, "GET")
            $0.fields.channelID = id
        }
        #expect(read.body == #"{"message-storage-policy":1,"push-type":"LiveActivity"}"#)
        #expect(try asker.ask { Self.manage(&$0, "GET", "all-channels") }.body == "{\"channels\":[\"\(id)\"]}")
        #expect(try asker.ask { Self.broadcast(&$0, id) }.status == 200)
        #expect(asker.service.channels.all.first?.sent.count == 1)
        let elsewhere = try asker.ask {
            Self.broadcast(&$0, id)
            $0.environment = .production
        }
        #expect(elsewhere.reason == .channelNotRegistered)
        func delete(_ request: inout Submission) {
            Self.manage(&request, "DELETE")
            request.fields.channelID = id
        }
        #expect(try asker.ask(delete).status == 204)
        #expect(try asker.ask(delete).reason == .channelNotRegistered)
        #expect(try asker.ask { Self.broadcast(&$0, id) }.reason == .channelNotRegistered)
    }

    @Test(arguments: [
        ("{}", Reason.missingPushType), ("[]", .badRequestPayload), ("", .badRequestPayload), ("{", .badRequestPayload),
        (#"{"push-type":"LiveActivity"}"#, .missingChannelQueueSize),
        (#"{"push-type":"alert","message-storage-policy":1}"#, .invalidPushType),
        (#"{"push-type":"LiveActivity","message-storage-policy":2}"#, .badRequestParams),
    ])
    func `a channel has a policy and a push type`(body: String, reason: Reason) throws {
        var asker = try Asker()
        let answer = try asker.ask {
            Self.manage(&$0, "POST")
            $0.setBody(body)
        }
        #expect(answer.reason == reason)
    }

    @Test(arguments: ["2", "-1", "true", "false", "\"1\"", "0.5", "null", "[0]", "{}", "1e300"])
    func `a storage policy is the number 0 or 1`(policy: String) throws {
        var asker = try Asker()
        let answer = try asker.ask {
            Self.manage(&$0, "POST")
            $0.setBody(#"{"message-storage-policy":\#(policy),"push-type":"LiveActivity"}"#)
        }
        #expect(answer.reason == .badRequestParams)
        #expect(asker.service.channels.all.isEmpty)
        for number in [0, 1] {
            let id = try #require(try Self.create(&asker, policy: number).channelID)
            #expect(asker.service.channels.all.first { $0.id == id }?.storesMessages == (number == 1))
        }
    }

    @Test func `an app has a limited number of channels`() throws {
        var asker = try Asker()
        asker.service.rules.channelsPerApp = 1
        #expect(try Self.create(&asker).status == 201)
        #expect(try Self.create(&asker).reason == .cannotCreateChannelConfig)
    }

    static let mistakes: [DevicePushTests.Mistake] = [
        .init(.missingChannelID, "no channel") { $0.fields.channelID = nil },
        .init(.badChannelID, "not base64") { $0.fields.channelID = "a-b" },
        .init(.missingPushType, "no push type") { $0.fields.pushType = nil },
        .init(.invalidPushType, "another push type") { $0.fields.pushType = "alert" },
        .init(.badPriority, "a priority of 1") { $0.fields.priority = "1" },
        .init(.badExpirationDate, "no expiration") { $0.fields.expiration = nil },
        .init(.badExpirationDate, "storage in a channel without") { $0.fields.expiration = "1900000000" },
        .init(.payloadEmpty, "no body") { $0.setBody("") },
        .init(.payloadTooLarge, "5121 bytes") { $0.payloadBytes = 5121 },
        .init(.badRequestPayload, "a start event") { $0.setBody(#"{"aps":{"event":"start"}}"#) },
        .init(.badRequestPayload, "not JSON") { $0.setBody("hello") },
        .init(.topicMismatch, "a topic of another app") { $0.fields.topic = "com.example.other" },
        .init(.badRequestParams, "a request id that is none") { $0.fields.requestID = "1" },
        .init(.badTopic, "a malformed bundle identifier") { $0.path = "/4/broadcasts/apps/com_example" },
        .init(.badPath, "a longer path") { $0.path += "/more" },
        .init(.methodNotAllowed, "GET") { $0.method = "GET" },
        .init(.featureNotEnabled, "an app without the capability") { $0.path = "/4/broadcasts/apps/com.example.plain" },
        .init(.topicMismatch, "an app of another team") { $0.path = "/4/broadcasts/apps/com.example.foreign" },
    ]

    @Test(arguments: mistakes) func `an honest mistake has its reason`(mistake: DevicePushTests.Mistake) throws {
        var asker = try Asker()
        asker.service.accounts.add(App(bundleID: "com.example.plain", teamID: asker.key.teamID, hasBroadcast: false))
        asker.service.accounts.add(App(bundleID: "com.example.foreign", teamID: "OTHERTEAM1"))
        let id = try #require(try Self.create(&asker, policy: 0).channelID)
        #expect(try asker.ask { Self.broadcast(&$0, id) }.status == 200)
        let answer = try asker.ask {
            Self.broadcast(&$0, id)
            mistake.make(&$0)
        }
        #expect(answer.reason == mistake.reason)
        #expect(answer.status == mistake.reason.status)
    }

    @Test func `management is at its own ports only`() throws {
        var asker = try Asker()
        let answer = try asker.ask {
            Self.manage(&$0, "GET", "all-channels")
            $0.services = .push
        }
        #expect(answer.reason == .badPath)
        #expect(try asker.ask { $0.services = .management }.reason == .badPath)
    }
}
