package ckptsim.flink;

/** One record: a number that decides all its keys, the time it was made, and ballast. A POJO, as in most jobs. */
public class Event {
    public long id;
    public long createdMs;
    public byte[] payload;

    public Event() {}

    Event(long id, long createdMs, byte[] payload) {
        this.id = id;
        this.createdMs = createdMs;
        this.payload = payload;
    }

    /** A key for the shuffle number {@code level}, drawn from the record's number: the same after every restart. */
    static long key(long id, int level, long keys, double hot) {
        long bits = mixed(id * 31 + level);
        boolean isHot = hot > 0 && (mixed(bits) >>> 11) * 0x1.0p-53 < hot;
        return isHot ? 0 : Math.floorMod(bits, keys);
    }

    /** A bijection of 64 bits without visible order (the finalizer of splitmix64). */
    static long mixed(long bits) {
        bits = (bits ^ (bits >>> 30)) * 0xbf58476d1ce4e5b9L;
        bits = (bits ^ (bits >>> 27)) * 0x94d049bb133111ebL;
        return bits ^ (bits >>> 31);
    }
}
