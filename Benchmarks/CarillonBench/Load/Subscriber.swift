import NIOCore

/// The start of a subscriber: the handshake, and a hello for Carillon.
struct Subscription: Sendable {
    enum Beginning: Sendable {
        /// The subscriber is ready after the response to the handshake.
        case handshake
        /// The subscriber is ready after the response to the hello.
        case hello(ByteBuffer)
        /// The subscriber is ready after all waiting messages were delivered.
        case helloUntilCaughtUp(ByteBuffer)
    }

    var handshake: ByteBuffer
    var beginning: Beginning
    /// The delay of each acknowledgement.
    var acknowledgesAfter = TimeAmount.zero
}

protocol SubscriberEvents: AnyObject, Sendable {
    func became(ready subscriber: Subscriber)
    func received(_ message: ByteBuffer, by subscriber: Subscriber)
    func closed(_ subscriber: Subscriber, _ reason: String)
}

/// A WebSocket that receives messages. If the server requires acknowledgements, it sends them at once or after the delay of
/// its subscription.
///
/// `@unchecked Sendable`: it is used only on ``LoadLoop``.
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
        // An idle subscriber has no buffer, so that it uses little memory.
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
        // The frame starts with {"messageType":"…, and the first letter of the type identifies it.
        let type = text.getInteger(at: text.readerIndex + 16, as: UInt8.self) ?? 0
        switch type {
        case UInt8(ascii: "n"):
            guard let channel = text.text(after: "\"channelid\":\""), let version = text.text(after: "\"version\":\"")
            else { return }
            // The message is recorded first, because making the acknowledgement is not part of the latency.
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
