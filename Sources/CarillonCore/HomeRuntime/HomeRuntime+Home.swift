/// A home of this process does each call itself. It throws only ``HomeFault/moved(to:)``, for shards that it does not have.
extension HomeRuntime: Home {
    package func arrive(
        _ name: DeviceName, _ proof: DeviceProof, _ load: InboxLoad, speaking version: Int, as session: any LiveSession
    ) async throws(HomeFault) -> Arrived {
        do {
            guard let arrived = try await arrival(of: name, proof, as: session, load) else { return .notKnown }
            arrivalListener?.arrived(arrived.device, version)
            return .device(arrived)
        } catch let fault as HomeFault {
            throw fault
        } catch {
            return .failed(error as? StoreFault ?? StoreFault(.unavailable, "\(error)"))
        }
    }

    package func read(_ load: InboxLoad, of device: DeviceSerial) async throws(HomeFault) -> Result<InboxRead, StoreFault> {
        guard has(device) else { throw .moved(to: Shard(of: device)) }
        return await inbox.read(device, load)
    }

    package func settle(_ answer: EnvelopeAnswer, of device: DeviceSerial) {
        inbox.settle(answer.id, device: device, answer.outcome, code: answer.code)
    }

    package func handle(_ request: HomeRequest) async throws(HomeFault) -> HomeResponse {
        guard let duties = presentDuties else { throw .unreachable }
        return try await duties.handle(request)
    }

    package func ask<Question: HomeQuestion>(
        _ question: Question
    ) async throws(HomeFault) -> Result<Question.Answer, any Error> {
        guard let duties = presentDuties else { throw .unreachable }
        if let shard = question.shard, !has(shard) { throw .moved(to: shard) }
        do {
            return .success(try await duties.answers.answer(question))
        } catch let fault as HomeFault {
            throw fault
        } catch {
            return .failure(error)
        }
    }

    package func leave(_ session: any LiveSession, of device: DeviceSerial) { sessions.leave(session, device: device) }

    /// Searches all sessions: the device can have another name since its session joined.
    package func leave(_ session: any LiveSession, of name: DeviceName) { sessions.leave(session) }
}
