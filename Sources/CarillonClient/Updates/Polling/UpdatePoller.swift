import CarillonBasics
import CarillonWire

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Polls the server for one owner's updates, and stores the responses.
struct UpdatePoller: Sendable {
    let owner: UpdateOwner
    let credential: String
    let api: ServerAPI
    let kinds: [String]
    let inbox: UpdateInbox

    struct Page: Sendable {
        var arrival: Arrival
        var more: Bool
        /// Whether the server has other parameters than the device, and this poll did not send them: the server has lost them.
        var hasLostParameters: Bool
        var retryAfter: Duration?
    }

    /// Polls the server. Returns nil if a hint ended the wait for the response.
    ///
    /// - Parameters:
    ///   - wait: How long the server may wait for an update, in seconds. The server does not wait if the poll reports results.
    ///   - parameters: The present parameters of the device; nil leaves the server's parameters unchanged.
    ///   - hints: The signal that ends the wait.
    func poll(wait: Int, parameters: ParameterSet?, hints: Signal) async throws(PollFault) -> Page? {
        let report: UpdateInbox.Report
        do {
            report = try await inbox.report(results: UpdatePoll.mostResults)
        } catch {
            throw Self.storage(error)
        }
        let changedParameters = parameters?.revision == report.parameters ? nil : parameters
        let poll = UpdatePoll(
            profile: owner.profile, kinds: kinds, position: report.position, parameters: changedParameters,
            results: report.results,
            waitSeconds: report.results.isEmpty ? wait : 0, capacity: report.capacity)
        guard let answer = try await answer(to: poll, hints) else { return nil }
        do {
            let arrival = try await inbox.received(
                answer, to: report.position, by: owner, reported: report.results, parameters: changedParameters?.revision)
            return Page(
                arrival: arrival, more: answer.more && report.capacity > 0,
                hasLostParameters: changedParameters == nil && answer.lacks(parameters), retryAfter: answer.retryAfter)
        } catch {
            throw Self.storage(error)
        }
    }

    /// Returns the response to a poll. A poll that does not wait is not ended by a hint.
    private func answer(to poll: UpdatePoll, _ hints: Signal) async throws(PollFault) -> PollAnswer? {
        guard poll.waitSeconds > 0 else { return try await send(poll) }
        let result = await withTaskGroup(of: Result<PollAnswer?, PollFault>.self) { group in
            group.addTask {
                do throws(PollFault) {
                    return .success(try await self.send(poll))
                } catch {
                    return .failure(error)
                }
            }
            group.addTask {
                await hints.wait()
                return .success(nil)
            }
            defer { group.cancelAll() }
            return await group.next() ?? .success(nil)
        }
        return try result.get()
    }

    private func send(_ poll: UpdatePoll) async throws(PollFault) -> PollAnswer {
        guard
            let request = api.request(
                .post, "/v1/inbox", bearer: credential, json: poll.body, answerLimit: UpdatePoll.answerLimit,
                patience: .seconds(poll.waitSeconds))
        else { throw Self.unreachable("\"\(api.base)\" is not a valid URL of a server.") }
        let server = request.address.authority
        let form = SuccessForm<PollAnswer>.content { $0.status == 200 ? UpdatePoll.answer(Array($0.body)) : nil }
        switch await api.send(request, expecting: form) {
        case .success(let page): return page
        case .refused(let refusal, let wait):
            guard refusal.code == .credentialInvalid, api.repeatsRegistration(credential) else {
                throw PollFault(refusal, retryAfter: wait, hadParameters: poll.parameters != nil, server: server)
            }
            let error = PushError(
                .serverUnavailable, "The server \(server) refused the device's credential; the registration is repeated.")
            api.failures.note(error)
            throw Self.unreachable(error.message, retryAfter: wait)
        case .foreign(let error, let wait):
            api.failures.note(error)
            throw Self.unreachable(error.message, retryAfter: wait)
        case .unreachable(let failure):
            // A poll that a hint ended did not fail.
            if !Task.isCancelled, failure.reason != .cancelled { api.failures.note(failure.error()) }
            throw Self.unreachable(failure.error().message)
        }
    }

    private static func unreachable(_ message: String, retryAfter: Duration? = nil) -> PollFault {
        .failed(UpdateFailure(.unreachable, message), retryAfter: retryAfter)
    }

    private static func storage(_ error: PushError) -> PollFault {
        .failed(UpdateFailure(.storage, error.message), retryAfter: nil)
    }
}

extension PollAnswer {
    /// Whether the server reports that it has other parameters than these.
    fileprivate func lacks(_ parameters: ParameterSet?) -> Bool {
        guard let parameters else { return false }
        return switch self.parameters {
        case .unknown: false
        case .none: true
        case .revision(let revision): revision != parameters.revision
        }
    }
}
