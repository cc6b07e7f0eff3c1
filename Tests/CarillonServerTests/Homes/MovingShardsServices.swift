import CarillonBasics
import CarillonCore
import CarillonWire
import Foundation
import NIOHTTP1
import Synchronization
import TestSupport

/// A request from one phone of a scenario to another.
struct ScenarioRequest: Sendable {
    let id: String
    let consumer: Int
    let provider: Int
    let sentAt: Int64
    let answeredAt: Int64
    var cancellationSentAt: Int64?
    /// The answer to the cancellation, and its time.
    var cancellation: (status: Int, code: String, at: Int64)?

    /// Whether the request can have no result.
    var mayBeCancelled: Bool {
        guard cancellationSentAt != nil else { return false }
        // Behind a first attempt whose answer was lost, a cancelled request counts as finished.
        return cancellation?.code != "already_delivered"
    }

    var text: String {
        "request \(id) from phone \(consumer) to phone \(provider), sent at \(sentAt) to \(answeredAt)"
            + (cancellation.map { cancellation in
                ", cancelled at \(cancellationSentAt ?? 0) to \(cancellation.at) with \(cancellation.status) "
                    + cancellation.code
            } ?? "")
    }
}

final class ScenarioRequests: Sendable {
    private let state = Mutex<[ScenarioRequest]>([])

    var all: [ScenarioRequest] { state.withLock { $0 } }

    func add(_ request: ScenarioRequest) -> Int {
        state.withLock { requests in
            requests.append(request)
            return requests.count - 1
        }
    }

    func change(_ place: Int, _ change: (inout ScenarioRequest) -> Void) { state.withLock { change(&$0[place]) } }
}

extension MovingShards {
    /// Lets a phone provide a service to the others.
    func offer(_ phone: ScenarioPhone) async throws {
        let keys = String(decoding: ServiceWorld.keys().json.bytes, as: UTF8.self)
        let body =
            #"{"name":"Files","version":"1","services":[{"id":"\#(ServiceWorld.service)","version":"1.0.0.0"}],"#
            + #""keys":\#(keys),"revision":"1"}"#
        _ = try await http.repeating(.init(.PUT, "/v1/device/services", key: phone.credential, body), expecting: 204)
    }

    func askProviders() async {
        var random = SeededRandom(seed: record.seed &+ 6000)
        while record.isRunning {
            do {
                try await askProvider(&random)
                try await Task.sleep(for: .milliseconds(Int.random(in: 50...250, using: &random)))
            } catch {
                guard !Task.isCancelled else { return }
                record.fault("consumer of services: \(error)")
                try? await Task.sleep(for: .milliseconds(200))
            }
        }
    }

    private func askProvider(_ random: inout SeededRandom) async throws {
        guard let provider = providers.randomElement(using: &random),
            let consumer = phones.filter({ $0.number != provider.number }).randomElement(using: &random)
        else { return }
        let id = UUID().uuidString.replacing("-", with: "").lowercased()
        let members =
            ServiceWorld.content.members
            + [
                ("id", id), ("app", Self.app), ("device", provider.device), ("service", ServiceWorld.service),
                ("version", "1.0.0.0"), ("method", "transferFile"),
            ].map { JSONValue.Member(name: $0.0, value: .string($0.1)) }
        let body = String(decoding: JSONValue.object(members).bytes, as: UTF8.self)
        let sentAt = record.now()
        _ = try await http.repeating(
            .init(.POST, "/v1/services/requests", key: consumer.credential, body), expecting: 201)
        let place = requests.add(
            ScenarioRequest(
                id: id, consumer: consumer.number, provider: provider.number, sentAt: sentAt, answeredAt: record.now()))
        record.count("service requests")
        guard Int.random(in: 0..<8, using: &random) == 0 else { return }
        let cancellationSentAt = record.now()
        requests.change(place) { $0.cancellationSentAt = cancellationSentAt }
        let answer = try await http.repeating(
            .init(.DELETE, "/v1/services/requests/\(id)", key: consumer.credential), expecting: 204, 404, 409)
        let at = record.now()
        requests.change(place) { $0.cancellation = (answer.status, answer["code"] ?? "", at) }
        record.count("cancelled service requests")
    }
}

// MARK: Requirements

extension ScenarioRequests {
    func find(_ findings: inout ScenarioFindings) {
        for request in all {
            let asked = findings.receipts[request.provider][.service("request", request.id)] ?? []
            let replies = findings.receipts[request.consumer][.service("reply", request.id)] ?? []
            if request.cancellation?.status == 204, let at = request.cancellation?.at {
                for receipt in asked where receipt.writtenAfter > at {
                    findings.add("\(request.text) was given later", of: request.provider, at: receipt.at, [receipt])
                }
                for receipt in replies {
                    findings.add("\(request.text) has a reply", of: request.consumer, at: receipt.at, [receipt])
                }
            }
            if !request.mayBeCancelled { findDues(request, asked, &findings) }
        }
        findFailures(&findings)
    }

    /// The provider gets the request, and the consumer one receipt and one reply.
    private func findDues(_ request: ScenarioRequest, _ asked: [PhoneLog.Receipt], _ findings: inout ScenarioFindings) {
        findings.dues.append(
            ScenarioDue(
                phone: request.provider, content: .service("request", request.id), since: request.answeredAt,
                text: request.text))
        guard let came = asked.first else { return }
        let answers = findings.logs[request.provider].answered[request.id]
        let since = answers?.at ?? came.at
        for event in ["received", "reply"] {
            findings.dues.append(
                ScenarioDue(
                    phone: request.consumer, content: .service(event, request.id), since: since,
                    text: "\(event) of \(request.text), which came to its provider at \(came.at) and was answered at "
                        + "\(answers.map { "\($0.at)" } ?? "no time"),"))
        }
        if let answers, answers.statuses != [204, 204], request.cancellationSentAt == nil {
            findings.add(
                "the answers to \(request.text) were refused with \(answers.statuses)", of: request.provider, at: since)
        }
    }

    private func findFailures(_ findings: inout ScenarioFindings) {
        for phone in findings.phones {
            for receipt in findings.logs[phone.number].receipts {
                guard case .service(let event, let id) = receipt.content, event.hasPrefix("failed") else { continue }
                findings.add("request \(id) \(event)", of: phone.number, at: receipt.at, [receipt])
            }
        }
    }
}
