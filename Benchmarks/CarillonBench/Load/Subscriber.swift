import NIOCore

/// How a subscriber begins: the handshake, and for Carillon a hello.
struct Subscription: Sendable {
    enum Beginning: Sendable {
        /// Subscribed when the handshake is answered.
        case handshake
        /// Ready when the hello is answered.
        case hello(ByteBuffer)
        /// Ready when everything that waits was given.
        case helloUntilCaughtUp(ByteBuffer)
    }

    var handshake: ByteBuffer
    var beginning: Beginning
    /// How late each message is acknowledged.
    var acknowledgesAfter = TimeAmount.zero
}

protocol SubscriberEvents: AnyObject, Sendable {
    func became(ready subscriber: Subscriber)
    func received(_ message: ByteBuffer, by subscriber: Subscriber)
    func closed(_ subscriber: Subscriber, _ reason: String)
}

/// One WebSocket that receives messages, and acknowledges each where the server wants that: at once, or as late as its subscription
/// says.
///
/// `@unchecked Sendable`: it lives on ``LoadLoop``.
final class Subscriber: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum Phase {
        case awaitingHandshake, awaitingHello, awaitingCaughtUp, live
    }

    let index: Int
    private let subscription: Subscription
    private let events: any SubscriberEvents
    private var phase = Phase.awaitingHandshake
    private var context: ChannelHandlerContext?
    private var received = ByteBuffer()
    private var acknowledgements = ByteBuffer()
    private var closeReason = "the server closed a subscriber's connection"
    private(set) var messageCount = 0

    init(index: Int, subscription: Subscription, events: any SubscriberEvents) {
        self.index = index
        self.subscription = subscription
        self.events = events
    }

    func close() { context?.close(promise: nil) }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        events.closed(self, closeReason)
    }

    func channelActive(context: ChannelHandlerContext) {
        context.writeAndFlush(Self.wrapOutboundOut(subscription.handshake), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = Self.unwrapInboundIn(data)
        if received.readableBytes > 0 {
            received.writeBuffer(&buffer)
        } else {
            received = buffer
        }
        if phase == .awaitingHandshake { readHandshake(context) }
        guard phase != .awaitingHandshake else { return }
        while let frame = ServerFrame.take(from: &received) { read(frame, context) }
        // An idle subscriber keeps no buffer.
        if received.readableBytes == 0 { received = ByteBuffer() }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        guard acknowledgements.readableBytes > 0 else { return }
        let frames = acknowledgements
        acknowledgements = ByteBuffer()
        guard subscription.acknowledgesAfter > .zero else {
            return context.writeAndFlush(Self.wrapOutboundOut(frames), promise: nil)
        }
        LoadLoop.loop.scheduleTask(in: subscription.acknowledgesAfter) {
            self.context?.writeAndFlush(Self.wrapOutboundOut(frames), promise: nil)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        closeReason = "a subscriber's connection failed: \(error)"
        context.close(promise: nil)
    }

    private func readHandshake(_ context: ChannelHandlerContext) {
        guard let end = received.offset(of: "\r\n\r\n") else { return }
        let status = received.number(at: 9)
        guard status == 101 else {
            closeReason = "a WebSocket handshake was answered with \(status)"
            return context.close(promise: nil)
        }
        received.moveReaderIndex(forwardBy: end + 4)
        switch subscription.beginning {
        case .handshake:
            becomeReady()
        case .hello(let hello), .helloUntilCaughtUp(let hello):
            phase = .awaitingHello
            context.writeAndFlush(Self.wrapOutboundOut(hello), promise: nil)
        }
    }

    private func read(_ frame: ServerFrame, _ context: ChannelHandlerContext) {
        switch frame.opcode {
        case .text:
            if case .handshake = subscription.beginning {
                take(frame.payload)
            } else {
                readCarillonFrame(frame.payload)
            }
        case .ping:
            context.writeAndFlush(Self.wrapOutboundOut(ClientFrame.pong(frame.payload)), promise: nil)
        case .close:
            let code: UInt16? = frame.payload.getInteger(at: frame.payload.readerIndex)
            closeReason = "the server closed a subscriber with code \(code ?? 1005)"
            context.close(promise: nil)
        case .other:
            break
        }
    }

    private func readCarillonFrame(_ text: ByteBuffer) {
        // {"messageType":"…: the type's first letters tell enough.
        let type = text.getInteger(at: text.readerIndex + 16, as: UInt8.self) ?? 0
        switch type {
        case UInt8(ascii: "n"):
            guard let channel = text.text(after: "\"channelid\":\""), let version = text.text(after: "\"version\":\"")
            else { return }
            // Before the acknowledgement, whose making is no part of the way to here.
            take(text)
            ClientFrame.acknowledge(channel: channel, version: version, to: &acknowledgements)
        case UInt8(ascii: "s"):
            guard let version = text.text(after: "\"version\":\"") else { return }
            take(text)
            ClientFrame.acknowledge(version: version, to: &acknowledgements)
        case UInt8(ascii: "h") where phase == .awaitingHello:
            if case .helloUntilCaughtUp = subscription.beginning {
                phase = .awaitingCaughtUp
            } else {
                becomeReady()
            }
        case UInt8(ascii: "c") where phase == .awaitingCaughtUp:
            becomeReady()
        default:
            break
        }
    }

    private func becomeReady() {
        phase = .live
        events.became(ready: self)
    }

    private func take(_ message: ByteBuffer) {
        messageCount += 1
        events.received(message, by: self)
    }
}
