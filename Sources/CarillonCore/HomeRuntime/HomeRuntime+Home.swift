/// A home of this process runs each call itself. It throws ``HomeFault/moved(to:)`` for shards that it does not have, and
/// ``HomeFault/unreachable`` for shards that move and have no new home in time (``ShardGate/longestWait``).
extension HomeRuntime: Home {
    package func arrive(
        _ name: DeviceName, _ proof: DeviceProof, _ load: PageRequest, speaking version: Int, openedAt: OpeningTime,
        as session: any LiveSession
    ) async throws(HomeFault) -> Arrived {
        do {
            guard let arrival = try await arrival(of: name, proof, as: session, load, openedAt: openedAt) else {
                return .unknownDevice
            }
            // If the session did not join because the device has a newer session, the listener is not called.
            if arrival.isJoined { arrivalListener?.arrived(arrival.arrived.device, version, session) }
            return .device(arrival.arrived)
        } catch let fault as HomeFault {
            throw fault
        } catch {
            return .failed(error as? StoreFault ?? StoreFault(.unavailable, "\(error)"))
        }
    }

    package func read(_ load: PageRequest, of device: DeviceSerial) async throws(HomeFault) -> Result<InboxRead, StoreFault>
    {
        guard has(device) else { throw .moved(to: Shard(of: device)) }
        return await inbox.read(device, load)
    }

    package func finish(_ answer: EnvelopeAnswer, of device: DeviceSerial) {
        guard let gate else {
            inbox.finish(answer.id, device: device, answer.outcome, code: answer.code)
            return
        }
        let shard = Shard(of: device)
        if gate.enterNow(shard) {
            inbox.finish(answer.id, device: device, answer.outcome, code: answer.code)
            return gate.leave(shard)
        }
        let isKept = gate.whenDecided(shard) { [weak self] in
            guard let self else { return }
            if gate.has(shard) { finish(answer, of: device) } else { newHome(shard)?.finish(answer, of: device) }
        }
        // The envelope is delivered again.
        if !isKept { sessions.end([device], because: .storageUnavailable) }
    }

    package func handle(_ request: HomeRequest) async throws(HomeFault) -> HomeResponse {
        guard let handler else { throw .unreachable }
        guard let gate, let shard = request.shard else { return try await handler(request, nil) }
        try await gate.enter(shard)
        let pass = ShardPass(of: shard, at: gate)
        defer { pass.leave() }
        return try await handler(request, pass)
    }

    package func ask<Question: HomeQuestion>(
        _ question: Question
    ) async throws(HomeFault) -> Result<Question.Answer, any Error> {
        guard let answers else { throw .unreachable }
        guard let gate, let shard = question.shard else { return try await result(of: question, answers) }
        try await gate.enter(shard)
        defer { gate.leave(shard) }
        return try await result(of: question, answers)
    }

    /// - Throws: ``HomeFault`` if the feature found that another home has the shard of the request.
    private func result<Question: HomeQuestion>(
        of question: Question, _ answers: HomeAnswers
    ) async throws(HomeFault) -> Result<Question.Answer, any Error> {
        do {
            return .success(try await answers.answer(question))
        } catch let fault as HomeFault {
            throw fault
        } catch {
            return .failure(error)
        }
    }

    package func leave(_ session: any LiveSession, of device: DeviceSerial) { sessions.leave(session, device: device) }

    /// Searches all sessions, because the device can have another name since its session joined. A link does not call this method
    /// for an arrival that the home answered, because the link has the serial of the device then.
    package func leave(_ session: any LiveSession, of name: DeviceName) { sessions.leave(session) }
}
