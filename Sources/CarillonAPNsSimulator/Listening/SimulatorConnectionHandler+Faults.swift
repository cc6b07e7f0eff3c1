import NIOCore
import NIOHPACK

extension SimulatorConnectionHandler {
    /// Applies a fault to a request. Returns false if the request needs no further processing.
    /// - Parameter processed: The response of the service, if the request was processed already.
    func goesOn(after rule: FaultRule, _ stream: UInt32, _ head: SimulatorRequestHead, processed: SimulatorAnswer?) -> Bool {
        switch rule.fault {
        case .reject(let reason):
            send(refusal(reason, of: head, processed), on: stream)
            if rule.stopsBody { http.stopBody(stream) }
            return false
        case .answer(let status, let body):
            var answer = SimulatorAnswer(status: status)
            // An HTML page is the response of another program, which has none of the service's IDs.
            if body != .html {
                answer.id = processed?.id ?? head.fields.id
                answer.uniqueID = processed?.uniqueID
            }
            var headers = headers(of: answer)
            if let type = body.contentType { headers.add(name: "content-type", value: type) }
            http.answer(stream, headers, body: ByteBuffer(string: body.text))
            if rule.stopsBody { http.stopBody(stream) }
            if answer.isAccepted, body != .html { accepted() }
            return false
        case .delay: return true
        case .silence:
            if processed != nil { self.processed.insert(stream) }
            return false
        case .reset(let code, let isRepeated):
            http.reset(stream, code)
            if isRepeated { http.writeReset(stream, code) }
            return false
        case .breakOff(let code):
            http.breakOff(stream, headers(of: processed ?? SimulatorAnswer(status: 200)), code)
            return false
        case .goAway(let reason, let last, let code, let closes):
            return goAway(reason: reason, last: last, code: code, closes: closes, stream)
        case .close:
            transport.cut()
            return false
        case .streamLimit(let limit):
            http.offer(streams: limit)
            return true
        case .streamWindow(let bytes):
            http.offer(streams: nil, streamWindow: bytes)
            return true
        case .refuseOthers:
            refuseOthers(than: stream)
            return true
        case .wedge:
            isWedged = true
            return false
        }
    }

    /// Returns the rejection with the IDs that the service itself would send.
    private func refusal(_ reason: Reason, of head: SimulatorRequestHead, _ processed: SimulatorAnswer?) -> SimulatorAnswer {
        hub.withState { state in
            var answer = SimulatorAnswer(reason, timestamp: reason.status == 410 ? hub.now(state).milliseconds : nil)
            guard let processed else { return state.service.identified(answer, submission(head, ByteBuffer(), 0)) }
            (answer.id, answer.uniqueID, answer.requestID) = (processed.id, processed.uniqueID, processed.requestID)
            return answer
        }
    }

    private func goAway(
        reason: String?, last: Fault.LastStream, code: APNsSimulator.HTTP2ErrorCode, closes: Bool, _ stream: UInt32
    ) -> Bool {
        let debug = reason.map { Reason(rawValue: $0).map { SimulatorAnswer($0).body } ?? $0 } ?? ""
        let wanted: UInt32 =
            switch last {
            case .this: stream
            case .before: stream > 2 ? stream - 2 : 0
            case .none: 0
            case .all: UInt32(Int32.max)
            }
        let number = dropStreams(above: wanted, code, debug: debug)
        closesWhenDrained = closesWhenDrained || closes
        return number >= stream
    }

    /// Sends GOAWAY. Its last stream is never below a stream that was processed and whose response is late or not read yet,
    /// because a lower number would mean that the stream was not processed.
    @discardableResult
    func dropStreams(above last: UInt32, _ code: APNsSimulator.HTTP2ErrorCode, debug: String) -> UInt32 {
        let last = max(last, processed.max() ?? 0, http.highestAnswering)
        for dropped in http.goAway(lastStream: last, code, debug: debug) { faults[dropped] = nil }
        return last
    }

    /// Refuses the other open streams, unless their request was processed, because a refusal means that it was not.
    func refuseOthers(than stream: UInt32) {
        let refused = http.resetAll(except: processed.union([stream]), .refusedStream)
        for number in refused { faults[number] = nil }
        report.refusedStreams += refused.count
    }
}

extension Fault.Body {
    var text: String {
        switch self {
        case .empty: ""
        case .html: "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"
        case .huge(let bytes): String(repeating: "x", count: bytes)
        case .text(let text): text
        }
    }

    var contentType: String? {
        switch self {
        case .empty: nil
        case .html: "text/html"
        case .huge: "text/plain"
        case .text: "application/json"
        }
    }
}
