//! Names the functions that fetch from textures.

/// The functions (CUDA C++ Programming Guide, *Texture Functions*).
pub(super) const FETCHES: [&str; 20] = [
    "tex1Dfetch",
    "tex1D",
    "tex1DLod",
    "tex1DGrad",
    "tex2D",
    "tex2DLod",
    "tex2DGrad",
    "tex2Dgather",
    "tex3D",
    "tex3DLod",
    "tex3DGrad",
    "tex1DLayered",
    "tex1DLayeredLod",
    "tex2DLayered",
    "tex2DLayeredLod",
    "tex2DLayeredGrad",
    "texCubemap",
    "texCubemapLod",
    "texCubemapLayered",
    "texCubemapLayeredLod",
];
