extension APNsSimulator {
    /// Something that a real service does and that a provider must survive.
    public enum Fault: Hashable, Sendable {
        /// What an answer holds instead of what it should.
        public enum Body: Hashable, Sendable {
            /// Nothing.
            case empty
            /// A page, as a proxy that stands between would send it.
            case html
            /// So many bytes of text.
            case huge(bytes: Int)
            /// Exactly this, called JSON.
            case text(String)
        }

        /// Which streams a GOAWAY says were, or will be, processed.
        public enum LastStream: String, Hashable, Sendable, CaseIterable {
            /// Up to this request, which is still served.
            case this
            /// Up to the one before this request, which is dropped.
            case before
            /// None but those that were processed already and whose answer is late: all else in flight is dropped.
            case none
            /// All that may ever come: the first, friendly GOAWAY of a graceful end.
            case all
        }

        /// Answers with a reason and its status; with 410, the timestamp is the present time.
        case reject(Reason)
        /// Answers with any status and body.
        case answer(status: Int, Body)
        /// Answers correctly, but later.
        case delay(Duration)
        /// Never answers this request.
        case silence
        /// Resets the stream, and a second time when `isRepeated`, as was seen on the real service.
        case reset(HTTP2ErrorCode, isRepeated: Bool = false)
        /// Begins an answer of 200, and resets the stream before its end.
        case breakOff(HTTP2ErrorCode)
        /// Announces the end of the connection, with a reason in the words of APNs or any text. With `closes`, the
        /// connection is closed when the promised streams are served.
        case goAway(reason: String?, last: LastStream, code: HTTP2ErrorCode = .noError, closes: Bool = true)
        /// Closes the connection without a word.
        case close
        /// Says with SETTINGS that so many streams may be open, and goes on.
        case streamLimit(Int)
        /// Says with SETTINGS how much of a body may be sent on each stream without asking, and goes on.
        case streamWindow(Int)
        /// Refuses every other stream that is open (RST_STREAM REFUSED_STREAM), and goes on.
        case refuseOthers
        /// Reads on, but says nothing any more on this connection, not even to a PING.
        case wedge
    }

    /// When a fault happens, and to what.
    public struct FaultRule: Hashable, Sendable {
        /// How far the request has come.
        public enum Moment: String, Hashable, Sendable, CaseIterable {
            /// When its headers are here: an answer is early, before the body was read.
            case headers
            /// When all of it is here, and before it is processed.
            case request
            /// After it was processed: the push is delivered, and only the answer suffers.
            case processed
        }

        /// What happens.
        public var fault: Fault
        /// How far the request has come when it does.
        public var moment: Moment
        /// Whether an answer that came before the end of the body is followed by RST_STREAM NO_ERROR, as RFC 9113 section
        /// 8.1 lets a server say that it needs no more of it.
        public var stopsBody: Bool
        /// How many matching requests pass before the first.
        public var skip: Int
        /// How often it happens; nil for ever.
        public var times: Int?
        /// How likely it is for each matching request, from 0 to 1. Chance follows from the seed, and from the numbers of
        /// the connection and of the stream, so that the same requests meet the same faults again.
        public var rate: Double
        /// Only requests whose path ends so: a device token, for instance.
        public var pathSuffix: String?
        /// Only this connection; the first one is 1.
        public var connection: Int?

        /// Makes a rule; without more, the fault happens to every request.
        public init(
            _ fault: Fault, at moment: Moment = .request, stopsBody: Bool = false, skip: Int = 0, times: Int? = nil,
            rate: Double = 1,
            pathSuffix: String? = nil, connection: Int? = nil
        ) {
            self.fault = fault
            self.moment = moment
            self.stopsBody = stopsBody
            self.skip = skip
            self.times = times
            self.rate = rate
            self.pathSuffix = pathSuffix
            self.connection = connection
        }
    }
}

typealias Fault = APNsSimulator.Fault
typealias FaultRule = APNsSimulator.FaultRule
