import CarillonBasics
import CarillonWire

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Asks the server for one owner's updates, and stores what it answers.
struct UpdatePoller: Sendable {
    let owner: UpdateOwner
    let credential: String
    /// Without a slash at its end.
    let base: String
    let kinds: [String]
    let inbox: UpdateInbox
    let transport: any ClientTransport
    var recognition = ServerRecognition()
    var failures = FailureNote()
    /// Whether a request whose credential the server refuses can succeed later, because the registration is repeated.
    var repeatsRegistration: @Sendable (_ credential: String) -> Bool = { _ in false }

    struct Page: Sendable {
        var arrival: Arrival
        var more: Bool
        /// The server has other parameters than the device has, and was not told with this poll: it lost what it had.
        var hasLostParameters: Bool
        var retryAfter: Duration?
    }

    /// Nil where the server was to wait, and was not waited for any more.
    ///
    /// - Parameters:
    ///   - wait: How long the server may wait for something to give, in seconds; it does not where results are said.
    ///   - parameters: What the device says of itself now; nil leaves it as it is.
    ///   - hints: What ends the wait.
    func poll(wait: Int, parameters: ParameterSet?, hints: Signal) async throws(PollFault) -> Page? {
        let word: UpdateInbox.Word
        do {
            word = try await inbox.word(results: UpdatePoll.mostResults)
        } catch {
            throw Self.storage(error)
        }
        let said = parameters?.revision == word.parameters ? nil : parameters
        let poll = UpdatePoll(
            profile: owner.profile, kinds: kinds, position: word.position, parameters: said, results: word.results,
            waitSeconds: word.results.isEmpty ? wait : 0, room: word.room)
        guard let answer = try await answer(to: poll, hints) else { return nil }
        do {
            let arrival = try await inbox.received(
                answer, to: word.position, by: owner, said: word.results, parameters: said?.revision)
            return Page(
                arrival: arrival, more: answer.more && word.room > 0,
                hasLostParameters: said == nil && answer.lacks(parameters), retryAfter: answer.retryAfter)
        } catch {
            throw Self.storage(error)
        }
    }

    /// A question that says something is not given up for another.
    private func answer(to poll: UpdatePoll, _ hints: Signal) async throws(PollFault) -> PollAnswer? {
        guard poll.waitSeconds > 0 else { return try await ask(poll) }
        let result = await withTaskGroup(of: Result<PollAnswer?, PollFault>.self) { group in
            group.addTask {
                do throws(PollFault) {
                    return .success(try await self.ask(poll))
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

    private func ask(_ poll: UpdatePoll) async throws(PollFault) -> PollAnswer {
        guard let address = WebAddress(http: base + "/v1/inbox") else {
            throw .failed(UpdateFailure(.unreachable, "\"\(base)\" is not a valid URL of a server."), retryAfter: nil)
        }
        let question = WebQuestion(
            method: .post, address: address, bearer: credential, json: poll.body,
            answerLimit: UpdatePoll.answerLimit, patience: .seconds(poll.waitSeconds))
        let answer: ServerAnswer<PollAnswer>
        do {
            answer = try await recognition.ask(question, of: base, over: transport) { response in
                response.status == 200 ? UpdatePoll.answer(Array(response.body)) : nil
            }
        } catch {
            let failure = ConnectionFailure(error, at: address.origin)
            // A poll that a hint ended did not fail.
            if !Task.isCancelled, failure.reason != .cancelled { failures.note(failure.error()) }
            throw .failed(UpdateFailure(.unreachable, failure.error().message), retryAfter: nil)
        }
        switch answer {
        case .success(let page): return page
        case .refused(let refusal, let wait):
            if refusal.code == .credentialInvalid, repeatsRegistration(credential) {
                let error = PushError(
                    .serverUnavailable,
                    "The server \(address.authority) refused the device's credential; the registration is repeated.")
                failures.note(error)
                throw .failed(UpdateFailure(.unreachable, error.message), retryAfter: wait)
            }
            throw PollFault(
                refusal, retryAfter: wait, hadParameters: poll.parameters != nil, server: address.authority)
        case .foreign(let error, let wait):
            failures.note(error)
            throw .failed(UpdateFailure(.unreachable, error.message), retryAfter: wait)
        }
    }

    private static func storage(_ error: PushError) -> PollFault {
        .failed(UpdateFailure(.storage, error.message), retryAfter: nil)
    }
}

extension PollAnswer {
    /// Whether the server says that it has others than these.
    fileprivate func lacks(_ parameters: ParameterSet?) -> Bool {
        guard let parameters else { return false }
        return switch self.parameters {
        case .unknown: false
        case .none: true
        case .revision(let revision): revision != parameters.revision
        }
    }
}
